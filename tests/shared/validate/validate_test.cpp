#include "shared/validate/validate.h"
#include "shared/scenario/image_tokens.h"

#include <doctest/doctest.h>

#include <functional>

#include "shared/data/distribution_text.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

// Returns the error that validate() reports for a changed tiny.json; empty if there is none.
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
  CHECK(
      vision([](Module& m) { m.layers = 0; }) ==
      "s.json: /model/vision/layers: layers must be from 1 to 2000, got 0 (write a whole number)");
  CHECK(vision([](Module& m) { m.patch = 5; }) ==
        "s.json: /model/vision/image_size: image_size must be a multiple of patch, 5, got 16 "
        "(nearest: 15 or 20)");
  CHECK(vision([](Module& m) { m.kv_heads = 2; }) ==
        "s.json: /model/vision: kv_heads must be equal to heads in a module of kind vision (remove "
        "\"kv_heads\")");
  CHECK(vision([](Module& m) { m.window = -1; }) ==
        "s.json: /model/vision/window: window must be at least 0, got -1 (0: blocks attend over "
        "whole images)");
  CHECK(vision([](Module& m) { m.full_attention_blocks = {0}; }) ==
        "s.json: /model/vision/full_attention_blocks: full_attention_blocks needs a window: "
        "without one, all blocks attend over whole images (remove the key, or write \"window\")");
  CHECK(vision([](Module& m) {
          m.window = 2;
          m.full_attention_blocks = {1, 2};
        }) ==
        "s.json: /model/vision/full_attention_blocks: full_attention_blocks must be from 0 to 1, "
        "got 2 (blocks are counted from 0)");
  CHECK(vision([](Module& m) {
          m.window = 2;
          m.class_token = true;
        }) ==
        "s.json: /model/vision/class_token: class_token and window exclude each other: a class "
        "token is in no window (use \"class_token\": false or \"window\": 0)");
  CHECK(vision([](Module& m) {
          m.rotary = true;
          m.head_dim = 6;
        }) ==
        "s.json: /model/vision/head_dim: head_dim must be a multiple of 4 with rotary positions, "
        "got 6 (use a multiple of 4)");
  CHECK(language([](Module& m) { m.kv_heads = 3; }) ==
        "s.json: /model/language/kv_heads: kv_heads must be a divisor of heads, 4, got 3 (each "
        "key/value head serves an equal group of heads)");
  CHECK(language([](Module& m) { m.head_dim = 7; }) ==
        "s.json: /model/language/head_dim: head_dim must be even (rotary pairs), got 7 (use an "
        "even width)");
  CHECK(language([](Module& m) { m.rope_sections = {1, 1, 1}; }) ==
        "s.json: /model/language/rope_sections: rope_sections must be three numbers whose sum is "
        "the 4 rotary frequencies of a head (such as [16, 24, 24] for heads of width 128, as in "
        "Qwen2-VL)");
  CHECK(language([](Module& m) { m.vocab = -1; }) ==
        "s.json: /model/language/vocab: vocab must be from 1 to 16777216, got -1 (write a whole "
        "number)");
  CHECK(refusal([](Scenario& s) { s.model.modules[1].merge = 3; }) ==
        "s.json: /model/projector/merge: merge must divide the 4×4 patches of an image, got 3×3 "
        "(use \"1x1\", or an image_size that is a multiple of 12 pixels)");
}

TEST_CASE("lora needs blocks and a rank, and other modules must not have a rank") {
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
        "s.json: /model/projector/train: lora needs transformer blocks, which a projector does not "
        "have (use \"full\" or \"frozen\")");
  CHECK(with(0, Trainable::full, 4, 0) ==
        "s.json: /model/vision/lora_rank: lora_rank needs \"train\": \"lora\", got full (use "
        "\"train\": \"lora\", or remove the key)");
  CHECK(with(0, Trainable::frozen, 0, 2) ==
        "s.json: /model/vision/lora_alpha: lora_alpha needs \"train\": \"lora\", got frozen (use "
        "\"train\": \"lora\", or remove the key)");
  CHECK(with(2, Trainable::lora, 1000, 0)
            .find("/model/language/lora_rank: lora_rank must be at most hidden, 32, got 1000 ") !=
        std::string::npos);
}

TEST_CASE("features that are not supported yet are rejected by name") {
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
        "s.json: /training/precision: fp16 is not supported yet (use bf16, fp32 or fp64)");
  CHECK(refusal([](Scenario& s) { s.training.fp8 = Fp8Scaling::tensorwise; }) ==
        "s.json: /training/fp8: fp8 must be used with precision bf16 (got fp32) (add "
        "\"precision\": \"bf16\", or remove fp8)");
  CHECK(refusal([](Scenario& s) { s.training.precision = NumberFormat::bf16; }).empty());
  CHECK(refusal([](Scenario& s) {
          s.training.precision = NumberFormat::bf16;
          s.cluster.device.bf16 = {};
        }) ==
        "s.json: /training/precision: cpu-core has no peak rate in bf16 (use fp32, or give the "
        "device's peak rate)");
}

TEST_CASE("the graph of modules") {
  CHECK(refusal([](Scenario& s) {
          s.model.modules.pop_back();
          s.model.edges.pop_back();
        }) == "s.json: /model: the model must have a language module (add \"language\": {…})");
  CHECK(refusal([](Scenario& s) { s.model.edges.pop_back(); }) ==
        "s.json: /model/projector: no module reads the output of projector (name it in the key "
        "\"from\" of another module)");
  CHECK(refusal([](Scenario& s) { s.model.edges.push_back({ModuleId(0), ModuleId(2), 0, -1}); }) ==
        "s.json: /model/language/from: from must be a projector, got vision (put a projector "
        "between the two)");
  CHECK(refusal([](Scenario& s) { s.model.edges.push_back({ModuleId(0), ModuleId(1), 0, 1}); }) ==
        "s.json: /model/projector/from: from must be one module for a projector, got 2 (name one "
        "module)");
  CHECK(refusal([](Scenario& s) {
          for (Module& m : s.model.modules) m.trainable = Trainable::frozen;
        }) ==
        "s.json: /model: at least one module must be trained, got only frozen ones (set \"train\": "
        "\"full\" in one of them)");
}

TEST_CASE("data, cluster and training") {
  const auto data = [](const std::function<void(SyntheticData&)>& change) {
    return refusal([&](Scenario& s) { change(std::get<SyntheticData>(s.data.source)); });
  };
  CHECK(data([](SyntheticData& d) { d.images = constant(3); }) ==
        "s.json: /data/sequence: sequence must be at least 20 tokens, got 16: a sample has up to 3 "
        "images of 4 tokens and 8 of text (use a longer sequence, fewer images, or less text)");
  CHECK(data([](SyntheticData& d) { d.images = parse_distribution("uniform(0,5000)"); }) ==
        "s.json: /data/images/per_sample: per_sample must be at most 4096, got up to 5000 (use "
        "fewer images per sample)");
  CHECK(data([](SyntheticData& d) { d.loss_tokens = constant(0); }) ==
        "s.json: /data/text/loss_tokens: loss_tokens must be at least 1: without labels there is "
        "no loss (write a number, or \"all\")");
  CHECK(data([](SyntheticData& d) { d.text_tokens = constant(0); }) ==
        "s.json: /data/text/tokens: tokens must be at least 1, got 0 (every sample needs text to "
        "predict)");
  CHECK(refusal([](Scenario& s) { s.data.source = EasyVqaData{}; }) ==
        "s.json: /model/vision/image_size: image_size must be 64, got 16: images of easy-vqa have "
        "64×64 pixels (use 64)");
  CHECK(refusal([](Scenario& s) { s.cluster.nodes = 1 << 20; }) ==
        "s.json: /cluster: the cluster must have 1 to 1048576 ranks, got 1048576 nodes of 2 "
        "(change \"nodes\", or the ranks of a node)");
  CHECK(refusal([](Scenario& s) { s.cluster.node_link.rate = {}; }) ==
        "s.json: /cluster/node/link: link must be above 0 (write the rate between accelerators of "
        "a node, such as \"450GBps\")");
  CHECK(refusal([](Scenario& s) { s.training.beta2 = 1; }) ==
        "s.json: /training/beta2: beta2 must be at least 0 and below 1 (such as 0.95)");
  CHECK(refusal([](Scenario& s) { s.training.steps = 0; }) ==
        "s.json: /training/steps: steps must be at least 1, got 0 (it is the number of training "
        "steps)");
}
