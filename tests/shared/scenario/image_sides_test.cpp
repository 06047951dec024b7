// Sizes of the images of synthetic data.
#include <doctest/doctest.h>

#include <cstdlib>

#include "shared/data/distribution_text.h"
#include "shared/scenario/image_tokens.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/validate/validate.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// tiny.json: images of 16 × 16 pixels, patches of 4, merged 2 × 2: cells of 8 pixels.
Scenario with_sides(const std::string& sides, int per_sample = 1) {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  auto& source = std::get<SyntheticData>(scenario.data.source);
  source.images = constant(per_sample);
  source.image_sides = parse_distribution(sides);
  return scenario;
}

std::string refusal(const Scenario& scenario) {
  try {
    validate(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("images of random sizes are squares of whole cells") {
  // Of 1 to 16 pixels those below 12 are nearest to one cell, or to none: one; the others are two.
  // 5 of 16: 500 ± 4·18.5 of 1,600 images.
  Scenario scenario = with_sides("uniform(1,16)", 2);
  scenario.data.global_batch = 800;
  int whole = 0, images = 0, unlike = 0;
  for (const Sample& sample : typical_batch(scenario).samples) {
    for (const Item& item : sample.items) {
      if (item.modality != Modality::image) continue;
      ++images;
      CHECK((item.tokens == 4 || item.tokens == 16));
      whole += item.tokens == 16 ? 1 : 0;
    }
    unlike += sample.items[0].tokens != sample.items[1].tokens ? 1 : 0;
  }
  CHECK(images == 1600);
  CHECK(std::abs(whole - 500) < 74);
  // Each image is drawn for itself: 2·(5/16)·(11/16) of 800 pairs, 344 ± 4·14.
  CHECK(std::abs(unlike - 344) < 56);
  CHECK_FALSE(constant_sizes(scenario.data));
}

TEST_CASE("images of one size that differs from the model's image_size") {
  const Scenario scenario = with_sides("8");
  for (const Sample& sample : typical_batch(scenario).samples)
    CHECK(sample.items.front() == Item{Modality::image, 4, 0});
  CHECK(constant_sizes(scenario.data));
  CHECK(tokens_per_image(scenario.model) == 4);
  CHECK(tokens_per_image(scenario.model, std::get<SyntheticData>(scenario.data.source)) == 1);
}

TEST_CASE("the longest sample has the largest images that can be drawn") {
  // sequence 16 of tiny.json: 8 of text leave room for two whole images of 4 tokens, or 8 small
  // ones.
  CHECK(refusal(with_sides("8", 8)).empty());
  CHECK(refusal(with_sides("uniform(1,11)", 8)).empty());
  CHECK(refusal(with_sides("uniform(1,12)", 3)).find("3 images of 4 tokens") != std::string::npos);
}

TEST_CASE("image sides that are rejected") {
  CHECK(refusal(with_sides("17")) ==
        "scenarios/tiny.json: /data/images/side: side must be at most 16 pixels, the image_size of "
        "vision, got up to 17 (use smaller images, or a larger model.vision.image_size)");
  Scenario blind = with_sides("8", 0);
  blind.model.modules.erase(blind.model.modules.begin(), blind.model.modules.begin() + 2);
  blind.model.edges.clear();
  blind.layout.reset();
  CHECK(refusal(blind).find("/data/images/side: the model has no vision module") !=
        std::string::npos);
}

TEST_CASE("sizes of images are read and resolved") {
  const auto scenario = [](const std::string& side) {
    std::string text = test::file_text("scenarios/tiny.json");
    const std::string images = R"("images": {"per_sample": 1)";
    const std::size_t at = text.find(images);
    REQUIRE(at != std::string::npos);
    return read_scenario(text.insert(at + images.size(), ", \"side\": " + side), "s.json",
                         test::file_text);
  };
  const Scenario read = scenario("\"lognormal(2,1)\"");
  CHECK(to_text(std::get<SyntheticData>(read.data.source).image_sides) == "lognormal(2,1,1,16)");
  CHECK(resolved_text(read).find(R"x("side": "lognormal(2,1,1,16)")x") != std::string::npos);
  CHECK_THROWS_WITH_AS(scenario("0"),
                       "s.json: /data/images/side: side must be at least 1 pixel (remove the key "
                       "for images of full size)",
                       InputError);
}

}  // namespace polyphony
