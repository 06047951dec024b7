#include "shared/validate/validate.h"
#include "shared/scenario/image_tokens.h"

#include <doctest/doctest.h>

#include <functional>

#include "shared/data/distribution_text.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

// The line that a change of tiny.json is refused with.
std::string refusal(const std::function<void(Scenario&)>& change) {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  scenario.file = "s.json";
  change(scenario);
  try {
    validate(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an unchanged scenario is valid") {
  CHECK(refusal([](Scenario&) {}).empty());
}

TEST_CASE("patches and tokens of an image") {
  const Scenario scenario = test::scenario_at("scenarios/vlm_12b_70b_h100.json");
  CHECK(patches_per_image(scenario.model) == 1024);  // (448 / 14)²
  CHECK(tokens_per_image(scenario.model) == 256);    // merged 2×2
}

TEST_CASE("the model's sizes") {
  const auto vision = [](const std::function<void(Module&)>& change) {
    return refusal([&](Scenario& s) { change(s.model.modules[0]); });
  };
  const auto language = [](const std::function<void(Module&)>& change) {
    return refusal([&](Scenario& s) { change(s.model.modules[2]); });
  };
  CHECK(vision([](Module& m) { m.layers = 0; }) ==
        "s.json: /model/vision/layers: 0 is out of range (write a whole number from 1 to 2000)");
  CHECK(vision([](Module& m) { m.patch = 5; }) ==
        "s.json: /model/vision/image_size: 16 pixels are not a multiple of patches of 5 (nearest: "
        "15 or 20)");
  CHECK(vision([](Module& m) { m.kv_heads = 2; }) ==
        "s.json: /model/vision: vision modules have as many key/value heads as heads (remove "
        "\"kv_heads\")");
  CHECK(vision([](Module& m) { m.window = -1; }) ==
        "s.json: /model/vision/window: negative (0: blocks attend over whole images)");
  CHECK(vision([](Module& m) { m.full_attention_blocks = {0}; }) ==
        "s.json: /model/vision/full_attention_blocks: without a window all blocks attend over "
        "whole images (remove the key, or give a \"window\")");
  CHECK(vision([](Module& m) {
          m.window = 2;
          m.full_attention_blocks = {1, 2};
        }) ==
        "s.json: /model/vision/full_attention_blocks: there is no block 2 (blocks are 0 to 1)");
  CHECK(vision([](Module& m) {
          m.window = 2;
          m.class_token = true;
        }) ==
        "s.json: /model/vision/class_token: a class token belongs to no window (use "
        "\"class_token\": false or \"window\": 0)");
  CHECK(vision([](Module& m) {
          m.rotary = true;
          m.head_dim = 6;
        }) ==
        "s.json: /model/vision/head_dim: a head of width 6 has no rotary pairs for rows and "
        "columns (use a multiple of 4)");
  CHECK(language([](Module& m) { m.kv_heads = 3; }) ==
        "s.json: /model/language/kv_heads: 3 key/value heads do not divide 4 heads (each serves an "
        "equal group of heads)");
  CHECK(language([](Module& m) { m.head_dim = 7; }) ==
        "s.json: /model/language/head_dim: a head of odd width 7 has no rotary pairs (use an even "
        "width)");
  CHECK(language([](Module& m) { m.rope_sections = {1, 1, 1}; }) ==
        "s.json: /model/language/rope_sections: frequencies for time, row and column must make up "
        "the 4 of a head (Qwen2-VL has [16, 24, 24] for heads of 128)");
  CHECK(language([](Module& m) { m.vocab = -1; }) ==
        "s.json: /model/language/vocab: -1 is out of range (write a whole number from 1 to "
        "16777216)");
  CHECK(refusal([](Scenario& s) { s.model.modules[1].merge = 3; }) ==
        "s.json: /model/projector/merge: 4×4 patches cannot be merged 3×3 (use \"1x1\", or an "
        "image size of a multiple of 12 pixels)");
}

TEST_CASE("lora needs blocks and a rank, and nothing else takes one") {
  const auto with = [](int module, Trainable train, int rank, double alpha) {
    return refusal([&](Scenario& s) {
      Module& m = s.model.modules[static_cast<std::size_t>(module)];
      m.trainable = train;
      m.lora_rank = rank;
      m.lora_alpha = alpha;
    });
  };
  CHECK(with(2, Trainable::lora, 0, 16) ==
        "s.json: /model/language: key \"lora_rank\" is missing (write the rank of the update, such "
        "as 16)");
  CHECK(with(1, Trainable::lora, 4, 0) ==
        "s.json: /model/projector/train: a projector has no transformer blocks for lora to adapt "
        "(use \"full\" or \"frozen\")");
  CHECK(
      with(0, Trainable::full, 4, 0) ==
      "s.json: /model/vision/lora_rank: does nothing where train is full (use \"train\": \"lora\", "
      "or remove the key)");
  CHECK(with(0, Trainable::frozen, 0, 2) ==
        "s.json: /model/vision/lora_alpha: does nothing where train is frozen (use \"train\": "
        "\"lora\", or remove the key)");
  CHECK(with(2, Trainable::lora, 1000, 0)
            .find("/model/language/lora_rank: 1000 is more than hidden ") != std::string::npos);
}

TEST_CASE("what is not supported yet is refused by name") {
  const auto with = [](int module, const std::function<void(Module&)>& change) {
    return refusal([&](Scenario& s) { change(s.model.modules[static_cast<std::size_t>(module)]); });
  };
  CHECK(with(0, [](Module& m) { m.kind = ModuleKind::diffusion; }).find("/model/vision") !=
        std::string::npos);
  CHECK(refusal([](Scenario& s) {
          s.model.modules.insert(s.model.modules.begin() + 1, s.model.modules[0]);
          s.model.modules[1].name = "eyes";
          for (Edge& edge : s.model.edges)
            edge = {ModuleId(edge.from.value + 1), ModuleId(edge.to.value + 1), 0, -1};
          s.model.edges.push_back({ModuleId(0), ModuleId(2), 0, -1});
        }) == "s.json: /model: several vision modules are not supported yet (keep one)");
  CHECK(refusal([](Scenario& s) { s.training.precision = NumberFormat::fp16; }) ==
        "s.json: /training/precision: fp16 is not supported yet (use fp32, fp64 or bf16)");
  CHECK(refusal([](Scenario& s) { s.training.precision = NumberFormat::bf16; }).empty());
  CHECK(refusal([](Scenario& s) {
          s.training.precision = NumberFormat::bf16;
          s.cluster.device.bf16 = {};
        }) == "s.json: /training/precision: cpu-core has no peak in bf16 (use fp32)");
}

TEST_CASE("the shape of the model") {
  CHECK(refusal([](Scenario& s) {
          s.model.modules.pop_back();
          s.model.edges.pop_back();
        }) == "s.json: /model: there is no language module (add \"language\": {…})");
  CHECK(
      refusal([](Scenario& s) { s.model.edges.pop_back(); }) ==
      "s.json: /model/projector: nothing reads its output (name it in another module's \"from\")");
  CHECK(refusal([](Scenario& s) { s.model.edges.push_back({ModuleId(0), ModuleId(2), 0, -1}); }) ==
        "s.json: /model/language/from: a language module reads from a projector, not from vision "
        "(put a projector between)");
  CHECK(refusal([](Scenario& s) { s.model.edges.push_back({ModuleId(0), ModuleId(1), 0, 1}); }) ==
        "s.json: /model/projector/from: a projector has one input (name one module)");
  CHECK(refusal([](Scenario& s) {
          for (Module& m : s.model.modules) m.trainable = Trainable::frozen;
        }) ==
        "s.json: /model: every module is frozen: nothing would be trained (set \"train\": \"full\" "
        "in one of them)");
}

TEST_CASE("data, cluster and training") {
  const auto data = [](const std::function<void(SyntheticData&)>& change) {
    return refusal([&](Scenario& s) { change(std::get<SyntheticData>(s.data.source)); });
  };
  CHECK(data([](SyntheticData& d) { d.images = constant(3); }) ==
        "s.json: /data/sequence: 3 images of 4 tokens and 8 of text make 20, more than 16 (a "
        "sequence of 20, fewer images, or less "
        "text)");
  CHECK(data([](SyntheticData& d) { d.images = parse_distribution("uniform(0,5000)"); }) ==
        "s.json: /data/images/per_sample: up to 5000 images in a sample (at most 4096)");
  CHECK(data([](SyntheticData& d) { d.loss_tokens = constant(0); }) ==
        "s.json: /data/text/loss_tokens: no token would carry a label: there is no loss (at least "
        "1, or \"all\")");
  CHECK(
      data([](SyntheticData& d) { d.text_tokens = constant(0); }) ==
      "s.json: /data/text/tokens: a sample without text has nothing to predict (at least 1 token)");
  CHECK(refusal([](Scenario& s) { s.data.source = EasyVqaData{}; }) ==
        "s.json: /model/vision/image_size: easy-vqa has images of 64×64 pixels (use 64)");
  CHECK(refusal([](Scenario& s) { s.cluster.nodes = 1 << 20; }) ==
        "s.json: /cluster: 1048576 nodes of 2 ranks are out of range (1 to 1048576 ranks "
        "altogether)");
  CHECK(
      refusal([](Scenario& s) { s.cluster.node_link.rate = {}; }) ==
      "s.json: /cluster/node/link: a rate of zero (write the rate between accelerators of a node)");
  CHECK(refusal([](Scenario& s) { s.training.beta2 = 1; }) ==
        "s.json: /training/beta2: out of range (at least 0 and below 1, such as 0.95)");
  CHECK(refusal([](Scenario& s) { s.training.steps = 0; }) ==
        "s.json: /training/steps: nothing to do in 0 steps (at least 1)");
}
