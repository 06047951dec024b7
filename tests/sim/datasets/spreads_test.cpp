// What samples of a data set hold, from the least to the most.
#include "sim/datasets/spreads.h"

#include <doctest/doctest.h>

#include "tests/shared/support/example_models.h"

namespace polyphony::sim {
namespace {

// Images of 1024 patches are 256 rows of the language module (merge 2 × 2).
std::vector<Sample> samples() {
  const Item picture{Modality::image, 1024, 0};
  return {{0, {picture, picture, {Modality::text, 30, 10}}},
          {1, {{Modality::text, 10, 10}}},
          {2, {picture, {Modality::text, 20, 5}}}};
}

std::vector<Spread> spreads() {
  return spreads_of(
      examples::chain(examples::vision_12b(), examples::projector_12b_70b(), examples::llama_70b()),
      samples());
}

const Spread& named(const std::vector<Spread>& all, const std::string& key) {
  for (const Spread& spread : all)
    if (spread.key == key) return spread;
  FAIL("no spread " << key);
  return all.front();
}

}  // namespace

TEST_CASE("counts of samples, of their images and of their texts are sorted") {
  using Values = std::vector<std::int64_t>;
  const std::vector<Spread> all = spreads();
  CHECK(named(all, "pictures").values == Values{0, 1, 2});
  CHECK(named(all, "patches of one").values == Values{1024, 1024, 1024});
  CHECK(named(all, "sounds").values == Values{0, 0, 0});
  CHECK(named(all, "clip tokens of one").values.empty());
  CHECK(named(all, "text tokens").values == Values{10, 20, 30});
  CHECK(named(all, "of them labels").values == Values{5, 10, 10});
  CHECK(named(all, "language tokens").values == Values{10, 276, 542});
  CHECK(named(all, "language tokens").at(0.5) == 276);
  CHECK(named(all, "clip tokens of one").at(0.5) == 0);
}

TEST_CASE("the summary states quantiles and what was left out") {
  const nlohmann::ordered_json json = to_json(spreads(), 3, {{"damaged image", 2}});
  CHECK(json["samples"] == 3);
  CHECK(json["left_out"]["damaged image"] == 2);
  CHECK(json["spread"]["text tokens"]["least"] == 10);
  CHECK(json["spread"]["text tokens"]["most"] == 30);
  CHECK(json["spread"]["text tokens"]["p90"] == 20);  // the last of three is beyond 90 %
}

}  // namespace polyphony::sim
