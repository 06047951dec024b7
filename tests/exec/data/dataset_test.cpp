#include "exec/data/dataset.h"

#include <doctest/doctest.h>

#include "exec/data/recorded_dataset.h"
#include "exec/data/synthetic_dataset.h"
#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec {
namespace {

using testing::refusal;
using testing::spill;
using testing::TempFolder;

// Images of 8 × 8 pixels are 4 × 4 patches of 2 × 2 pixels, merged 2 × 2 to 4 positions.
Model small_model() {
  Module vision{.name = "vision", .kind = ModuleKind::vision};
  vision.image_size = 8;
  vision.patch = 2;
  Module projector{.name = "projector", .kind = ModuleKind::projector};
  projector.merge = 2;
  Module language{.name = "language", .kind = ModuleKind::language};
  language.vocab = 40;
  return {{vision, projector, language}, {{ModuleId(0), ModuleId(1)}, {ModuleId(1), ModuleId(2)}}};
}
Scenario small_scenario(const decltype(Data::source)& source) {
  Scenario scenario;
  scenario.file = "small.json";
  scenario.model = small_model();
  scenario.data.source = source;
  scenario.data.global_batch = 4;
  return scenario;
}

// Every number encodes its origin: pixel 10000·image + 1000·channel + 10·row + column, token
// 100·sample + position, label 100·sample + 50 + position.
class NumberedDataset : public Dataset {
 public:
  Batch batch(std::uint64_t) const override { return {}; }
  std::vector<Sample> held_out() const override { return {}; }
  SampleContent content(const Sample& sample, ContentParts parts) const override {
    SampleContent content;
    std::int64_t images = 0, position = 0, label = 0;
    for (const Item& item : sample.items) {
      if (item.modality == Modality::image) {
        const PatchGrid grid = grid_of(item);
        const auto rows = torch::arange(2 * grid.rows, torch::kFloat32);
        const auto columns = torch::arange(2 * grid.columns, torch::kFloat32);
        const auto channel = torch::arange(3, torch::kFloat32);
        if (parts.images)
          content.images.push_back(channel.view({3, 1, 1}) * 1000 +
                                   rows.view({1, 2 * grid.rows, 1}) * 10 + columns +
                                   10000.0 * static_cast<double>(images++));
      } else if (parts.text) {
        for (std::int32_t i = 0; i < item.tokens; ++i)
          content.token_ids.push_back(100 * sample.id + position++);
        for (std::int32_t i = 0; i < item.loss_tokens; ++i)
          content.labels.push_back(100 * sample.id + 50 + label++);
      }
    }
    return content;
  }
};

// Samples with 0, 1 and 2 images; one microbatch has them in the order 2, 0, 1.
Program three_samples() {
  const auto image = [](std::int32_t patches) { return Item{Modality::image, patches, 0}; };
  const auto text = [](std::int32_t tokens, std::int32_t labels) {
    return Item{Modality::text, tokens, labels};
  };
  Program program;
  program.model = small_model();
  program.batch.samples = {{0, {text(3, 2)}},
                           {1, {image(4), text(2, 1)}},
                           {2, {text(1, 0), image(16), image(4), text(2, 1)}}};
  program.work_samples = {2, 0, 1};
  program.works = {Work{.samples = {0, 3}, .items = {0, 3}, .rows = {0, 1}}};
  program.items_of_works = {{2, 1}, {2, 2}, {1, 0}};
  program.work_rows = {{0, 14}};
  program.layout.modules.resize(program.model.modules.size());
  program.totals = {3, 10, 0};  // of a larger global batch
  return program;
}

std::vector<std::int64_t> numbers(const torch::Tensor& tensor) {
  return {tensor.const_data_ptr<std::int64_t>(),
          tensor.const_data_ptr<std::int64_t>() + tensor.numel()};
}
using Numbers = std::vector<std::int64_t>;

}  // namespace

TEST_SUITE("dataset") {
  TEST_CASE("three samples are packed as computed by hand") {
    const WorkInput input = pack_work(three_samples(), WorkId(0), NumberedDataset(),
                                      torch::kFloat64, {true, true, false, {}});
    // Sample 2 at 0: text 0, image 1 to 4 (16 patches), image 5 (4 patches), text 6, 7. Sample 0 at
    // 8: text 8 to 10. Sample 1 at 11: image 11, text 12, 13.
    CHECK(input.lengths == Numbers{8, 3, 3});
    CHECK(input.image_lengths() == Numbers{16, 4, 4});
    CHECK(numbers(input.text_rows) == Numbers{0, 6, 7, 8, 9, 10, 12, 13});
    CHECK(numbers(input.edge_rows.at(1)) == Numbers{1, 2, 3, 4, 5, 11});
    CHECK(numbers(input.positions) == Numbers{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 0, 1, 2});
    CHECK(numbers(input.loss_rows) == Numbers{7, 9, 10, 13});
    CHECK(numbers(input.token_ids) == Numbers{200, 201, 202, 0, 1, 2, 100, 101});
    CHECK(numbers(input.labels) == Numbers{250, 50, 51, 150});
    CHECK(input.loss_scale == 0.1);
  }

  TEST_CASE("patches are rows, row-major over the image, with features channel, row, column") {
    const WorkInput input = pack_work(three_samples(), WorkId(0), NumberedDataset(),
                                      torch::kFloat64, {true, false, false, {}});
    CHECK(input.patches.sizes() == torch::IntArrayRef({24, 12}));
    CHECK((input.patches.scalar_type() == torch::kFloat64));
    const auto at = [&](int row, int feature) {
      return input.patches[row][feature].item<double>();
    };
    CHECK(at(0, 0) == 0);       // image 0, pixel (0, 0) of channel 0
    CHECK(at(0, 3) == 11);      // pixel (1, 1)
    CHECK(at(6, 0) == 24);      // patch (1, 2) begins at pixel (2, 4)
    CHECK(at(6, 7) == 1035);    // its last pixel (3, 5) in channel 1
    CHECK(at(15, 11) == 2077);  // the last pixel (7, 7) in channel 2
    CHECK(at(17, 0) ==
          10002);  // image 1 (2 × 2 patches) from row 16: patch (0, 1) begins at pixel (0, 2)
    CHECK(at(22, 4) ==
          1020);  // sample 1's image 0 from row 20: patch (1, 0), pixel (2, 0) of channel 1
    CHECK_FALSE(input.token_ids.defined());
  }

  TEST_CASE("patches of an image of 2 × 4 and one of 4 × 2 are rows in the order of their grids") {
    Program program = three_samples();
    program.batch.samples[2].items[1] = image_item({2, 4});  // rows 0 to 7
    program.batch.samples[1].items[0] = image_item({4, 2});  // from row 8 + 4 on
    const WorkInput input =
        pack_work(program, WorkId(0), NumberedDataset(), torch::kFloat64, {true, false, false, {}});
    CHECK((input.images == std::vector<PatchGrid>{{2, 4}, {2, 2}, {4, 2}}));
    CHECK(input.patches.sizes() == torch::IntArrayRef({20, 12}));
    const auto at = [&](int row, int feature) {
      return input.patches[row][feature].item<double>();
    };
    CHECK(at(3, 1) == 7);       // patch (0, 3), pixel (0, 7)
    CHECK(at(4, 2) == 30);      // patch (1, 0), pixel (3, 0)
    CHECK(at(13, 0) == 2);      // sample 1: patch (0, 1), pixel (0, 2)
    CHECK(at(19, 11) == 2073);  // patch (3, 1): its last pixel (7, 3) in channel 2
  }

  TEST_CASE("only requested parts are loaded") {
    const WorkInput text = pack_work(three_samples(), WorkId(0), NumberedDataset(), torch::kFloat32,
                                     {false, true, false, {}});
    CHECK_FALSE(text.patches.defined());
    CHECK(text.token_ids.numel() == 8);
    const WorkInput neither = pack_work(three_samples(), WorkId(0), NumberedDataset(),
                                        torch::kFloat32, {false, false, false, {}});
    CHECK_FALSE(neither.token_ids.defined());
    CHECK(neither.lengths == Numbers{8, 3, 3});
    CHECK(neither.image_lengths() == Numbers{16, 4, 4});
    CHECK(neither.positions.numel() == 14);
  }

  TEST_CASE(
      "a batch without labels has a finite loss scale, an empty microbatch has empty tensors") {
    Program program = three_samples();
    program.totals.loss_tokens = 0;
    program.works.push_back(Work{.index = 1, .samples = {3, 3}});
    const WorkInput input =
        pack_work(program, WorkId(1), NumberedDataset(), torch::kFloat32, {true, true, false, {}});
    CHECK(input.loss_scale == 1.0);
    CHECK(input.patches.sizes() == torch::IntArrayRef({0, 12}));
    CHECK(input.token_ids.numel() == 0);
    CHECK(input.positions.numel() == 0);
  }

  TEST_CASE("synthetic content depends only on seed and sample") {
    SyntheticData source;
    source.images = {Distribution::Kind::uniform, 0, 2};
    source.text_tokens = {Distribution::Kind::uniform, 3, 9};
    source.loss_tokens = {Distribution::Kind::constant, 2};
    Scenario scenario = small_scenario(source);
    const auto dataset = open_dataset(scenario, "");
    const auto again = open_dataset(scenario, "");
    CHECK(dataset->held_out().empty());
    for (const Sample& sample : dataset->batch(5).samples) {
      const SampleContent content = dataset->content(sample, {});
      const SampleContent text = again->content(sample, {false, true});
      const SampleContent images = again->content(sample, {true, false});
      REQUIRE(content.images.size() == sample.items.size() - 1);
      CHECK(std::cmp_equal(content.token_ids.size(), sample.items.back().tokens));
      CHECK(content.labels.size() == 2);
      CHECK(text.token_ids == content.token_ids);
      CHECK(text.labels == content.labels);
      CHECK(text.images.empty());
      CHECK(images.token_ids.empty());
      for (const std::int64_t id : content.token_ids) CHECK((id >= 0 && id < 40));
      for (std::size_t i = 0; i < content.images.size(); ++i) {
        CHECK(images.images[i].equal(content.images[i]));
        CHECK(content.images[i].sizes() == torch::IntArrayRef({3, 8, 8}));
        CHECK(content.images[i].abs().max().item<double>() <= 1);
        CHECK(content.images[i].std().item<double>() > 0.4);  // uniform on [-1, 1]: 1/√3 = 0.58
      }
    }
    const Sample first = dataset->batch(0).samples[0], second = dataset->batch(0).samples[1];
    CHECK(dataset->content(first, {}).token_ids != dataset->content(second, {}).token_ids);
    scenario.data.seed = 2;
    CHECK(open_dataset(scenario, "")->content(first, {}).token_ids !=
          dataset->content(first, {}).token_ids);
  }

  TEST_CASE("recorded shapes get synthetic content; an epoch has every sample once") {
    const TempFolder folder;
    const std::string path = folder / "mix.jsonl";
    spill(path,
          "{\"items\": [[\"text\", 9, 1]]}\n{\"items\": [[\"image\", 16], [\"text\", 4]]}\n"
          "{\"items\": [[\"image\", [2, 4]], [\"image\", 16], [\"text\", 2, 2]]}\n{\"items\": "
          "[[\"text\", 1]]}\n");
    const auto dataset = open_dataset(small_scenario(RecordedData{path}), "");
    std::vector<std::uint32_t> ids;
    for (const Sample& sample : dataset->batch(3).samples) {
      ids.push_back(sample.id);
      if (sample.id == 2) {
        const SampleContent content = dataset->content(sample, {});
        CHECK(content.images.at(0).sizes() == torch::IntArrayRef({3, 4, 8}));
        CHECK(content.images.at(1).sizes() == torch::IntArrayRef({3, 8, 8}));
        CHECK(content.labels.size() == 2);
      }
    }
    std::sort(ids.begin(), ids.end());
    CHECK(ids == std::vector<std::uint32_t>{0, 1, 2, 3});
  }

  TEST_CASE("recorded samples that the model cannot take are refused") {
    const TempFolder folder;
    const std::string path = folder / "mix.jsonl";
    Scenario scenario = small_scenario(RecordedData{path});
    const auto refused = [&](const std::string& lines) {
      spill(path, lines);
      return refusal([&] { open_dataset(scenario, ""); });
    };
    const auto message = [&](const char* what) { return path + what; };
    CHECK(refusal([&] { open_dataset(scenario, ""); }) ==
          message(": cannot be read (check /data/source/recorded in small.json)"));
    CHECK(refused("{\"items\": [[\"text\", 2]]}\n{\"items\": [[\"image\", 15], [\"text\", 2]]}") ==
          message(": sample 1 (counted from 0) has an image of 15 patches; images must be squares, "
                  "or [rows, columns], whose sides are a multiple of 2 and at most 4 (change the "
                  "recorded number, or model.vision.image_size)"));
    for (const char* image : {"9", "64", "[2, 8]", "[1, 4]"})
      CHECK(refused("{\"items\": [[\"image\", " + std::string(image) + "]]}")
                .find("images must be squares") != std::string::npos);
    CHECK(refused("{\"items\": [[\"text\", 0]]}") ==
          message(": sample 0 (counted from 0) has no tokens (remove it)"));
    scenario.data.sequence = 5;
    CHECK(refused("{\"items\": [[\"image\", 16], [\"text\", 2]]}") ==
          message(": sample 0 (counted from 0) has 6 tokens, more than the 5 of /data/sequence in "
                  "the scenario (increase /data/sequence, or remove the sample)"));
    CHECK(refused("{\"items\": [[\"ima").find("line 1: not JSON") != std::string::npos);
    scenario.model.modules.erase(scenario.model.modules.begin(),
                                 scenario.model.modules.begin() + 2);
    scenario.model.edges.clear();
    CHECK(refused("{\"items\": [[\"image\", 16]]}").find("the model has no vision module") !=
          std::string::npos);
  }
}

}  // namespace polyphony::exec
