// Diffusion modules in scenario files, edges between inner layers, and latents in samples.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "shared/chunk/expand.h"
#include "shared/data/batch_json.h"
#include "shared/data/distribution_text.h"
#include "shared/program/sample_mask.h"
#include "shared/scenario_io/data_set.h"
#include "shared/scenario_io/scenario_parts.h"
#include "shared/validate/validate.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/small_diffusion.h"

namespace polyphony {
namespace {

using examples::small_diffusion;

Model model_from(const std::string& text) {
  std::vector<std::string> notes;
  return read_model(JsonValue::parse(text, "s.json"), {}, NumberFormat::bf16, notes);
}

constexpr const char* kDiffusionLanguage =
    R"("language": {"layers": 4, "hidden": 24, "heads": 4, "ffn": 32, "vocab": 64})";

// tiny.json with a small diffusion module that its language module conditions, then changed.
std::string refusal(const std::function<void(Scenario&)>& change) {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  scenario.file = "s.json";
  const Module& language = scenario.model.modules[2];
  scenario.model.modules.push_back(small_diffusion());
  scenario.model.modules.back().condition = language.hidden;
  scenario.model.edges.push_back({ModuleId(2), ModuleId(3), 0, language.layers});
  change(scenario);
  try {
    validate(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("edges define where rows are added and whether gradients flow back") {
  Model model =
      model_from(std::string("{") + kDiffusionLanguage +
                 R"(, "diffusion": {"layers": 2, "hidden": 8, "heads": 1, "ffn": 12, "patch": 2,
                        "latent_channels": 4, "latent_tokens": 16, "from": "language"}})");
  const Module& diffusion = model.modules[1];
  CHECK(diffusion.condition == 24);
  CHECK(diffusion.modulation == 8);
  CHECK(diffusion.attention_bias);
  CHECK(diffusion.loss_weight == 1);
  CHECK(latent_width(diffusion) == 16);
  CHECK((model.edges[0] == Edge{ModuleId(0), ModuleId(1), 0, 4}));
  CHECK(layers(diffusion).front() == LayerKind::latent_embedding);
  CHECK(layers(diffusion).back() == LayerKind::diffusion_head);
  const auto context = [&](int begin) {
    return chunk_context(model, ModuleId(1), begin, {}, NumberFormat::fp32);
  };
  CHECK((context(0).input_grad && context(1).edge_grad));
  model.modules[0].trainable = Trainable::frozen;
  CHECK_FALSE(context(0).input_grad);
  CHECK((context(1).input_grad && !context(1).edge_grad));
  // Two projectors add to layers 1 and 3 of the language module.
  const Model deep = model_from(std::string(R"({"vision": {"layers": 4, "hidden": 8, "heads": 1,
      "ffn": 16, "image_size": 8, "patch": 2}, "outer": {"kind": "projector", "from": "vision"},
      "deep": {"kind": "projector", "from": {"module": "vision", "from_layer": 2}},
      "language": {"layers": 4, "hidden": 24, "heads": 4, "ffn": 32, "vocab": 64,
      "from": ["outer", {"module": "deep", "to_layer": 3}]}})"));
  const auto added = [&](int begin) {
    return chunk_context(deep, ModuleId(3), begin, {}, NumberFormat::fp32).added_edges;
  };
  CHECK((added(0) == 0 && added(2) == 0 && added(3) == 1));
  // 5 of 8 tokens are images': a copy of 8·24 values, 5·24 read twice and written, fp32.
  const Expansion with = expand(deep.modules[3], {3, 4}, Phase::forward,
                                {.tokens = 8, .text_tokens = 3}, {.added_edges = 1});
  CHECK(with.kernels.front().kind == KernelKind::embedding);
  CHECK(with.kernels.front().bytes.value == (2 * 8 + 3 * 5) * 24 * 4);
}

TEST_CASE("a diffusion model is resolved and read back") {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  scenario.model =
      model_from(std::string("{") + kDiffusionLanguage +
                 R"(, "pictures": {"kind": "diffusion", "preset": "dit-xl-2", "layers": 2,
                           "loss_weight": 0.25, "from": {"module": "language", "from_layer": 2}}})");
  scenario.layout.reset();
  scenario.data.source = SyntheticData{.text_tokens = constant(4),
                                       .loss_tokens = constant(1),
                                       .latents = parse_distribution("uniform(0,1)"),
                                       .latent_tokens = 256};
  const JsonValue text = JsonValue::parse(resolved_text(scenario), "s.json");
  std::vector<std::string> notes;
  const Model again = read_model(text.at("model"), {}, NumberFormat::bf16, notes);
  CHECK(again == scenario.model);
  CHECK(again.modules[1].condition == 24);
  CHECK(again.edges[0].from_layer == 2);
  CHECK(read_data(text.at("data"), again, {}) == scenario.data);
}

TEST_CASE("diffusion modules that are rejected") {
  const auto with = [](const std::function<void(Module&)>& change) {
    return refusal([&](Scenario& s) { change(s.model.modules[3]); });
  };
  CHECK(with([](Module& m) { m.latent_channels = 0; }) ==
        "s.json: /model/diffusion/latent_channels: latent_channels must be from 1 to 4096, got 0 "
        "(write a whole number)");
  CHECK(with([](Module& m) {
          m.modulation = 0;
        }).find("/modulation: modulation must be from 1 to 1048576, got 0") != std::string::npos);
  CHECK(with([](Module& m) { m.hidden = 10; }) ==
        "s.json: /model/diffusion/hidden: hidden must be a multiple of 4 (sine and cosine of two "
        "axes), got 10 (nearest: 8 or 12)");
  CHECK(with([](Module& m) {
          m.gated = true;
        }).find("/gated: a gated feed-forward layer is not supported") != std::string::npos);
  CHECK(with([](Module& m) { m.loss_weight = 0; }) ==
        "s.json: /model/diffusion/loss_weight: loss_weight must be above 0 (1 is usual)");
  CHECK(refusal([](Scenario& s) { s.model.edges.pop_back(); }) ==
        "s.json: /model/diffusion/from: exactly one module must condition a diffusion module (name "
        "the language module)");
  CHECK(refusal([](Scenario& s) { s.model.edges.back().from = ModuleId(0); }) ==
        "s.json: /model/diffusion/from: from must be a language module, got vision (name the "
        "language module)");
  CHECK(refusal([](Scenario& s) { s.model.edges.back().to_layer = 1; }) ==
        "s.json: /model/diffusion/from: to_layer must not be given: every block reads the "
        "conditioning (remove \"to_layer\")");
  CHECK(refusal([](Scenario& s) {
          s.model.edges.back().from_layer = 9;
        }).find("from_layer must be a block of language, from 1 to 4, got 9") != std::string::npos);
}

TEST_CASE("layers that edges name") {
  const auto edge = [](std::size_t e, int from_layer, int to_layer) {
    return refusal([=](Scenario& s) {
      s.model.modules.pop_back();
      s.model.edges.pop_back();
      s.model.edges[e].from_layer = from_layer;
      s.model.edges[e].to_layer = to_layer;
    });
  };
  CHECK(edge(0, 99, 0).find("from_layer must be a layer of vision, from 0 to 3, got 99") !=
        std::string::npos);
  CHECK(edge(0, -1, 1).find("only language modules have edges into inner layers") !=
        std::string::npos);
  CHECK(edge(1, -1, 99).find("to_layer must be a block of language, from 1 to 4, got 99") !=
        std::string::npos);
}

TEST_CASE("each latent of a packed sample reads its own text") {
  const Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  const Item clip{Modality::audio, 4, 0};  // 2 rows
  const auto text = [](std::int32_t tokens) { return Item{Modality::text, tokens, 0}; };
  const auto latent = [](std::int32_t tokens) { return Item{Modality::latent, tokens, 0}; };
  const Sample packed{0, {text(5), latent(9), clip, text(3), latent(4), text(7)}};
  CHECK((condition_rows(scenario.model, packed, 1) == Interval{0, 5}));
  CHECK((condition_rows(scenario.model, packed, 4) == Interval{5, 17}));  // 2 + 3, and 7 behind it
  CHECK((condition_rows(scenario.model, {0, {latent(4), text(6)}}, 0) == Interval{0, 6}));
  // Rows that are read 5 + 12; pairs 9·5 + 4·12 across, 9² + 4² among themselves.
  const ModuleId diffusion(scenario.model.modules.size() - 1);
  const std::uint32_t first = 0;
  const WorkSize size = work_size(scenario.model, diffusion, {{packed}}, &first, 1);
  CHECK(size.condition == 17);
  CHECK(size.cross_pairs == 93);
  CHECK(size.pairs == 97);
  CHECK(size.sequences == 2);
}

TEST_CASE("a latent without text is rejected, several latents in a sample are accepted") {
  Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  scenario.data.source = RecordedData{"mix.jsonl"};
  const auto read = [&](const std::string& line) {
    try {
      load_samples(scenario, "", [&](const std::string&) { return line; });
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  CHECK(read(R"({"items": [["text", 4], ["latent", 4], ["text", 3], ["latent", 16]]})") == "read");
  CHECK(read(R"({"items": [["text", 4], ["latent", 4], ["latent", 16]]})") ==
        "mix.jsonl: sample 0 (counted from 0) has a latent without text (put the text of a latent "
        "before it)");
}

TEST_CASE("latents among the items of samples") {
  const std::vector<Sample> samples =
      parse_samples(R"({"items": [["text", 9, 1], ["latent", 256]]})", "mix.jsonl");
  CHECK((samples[0].items[1] == Item{Modality::latent, 256, 0}));
  CHECK(to_json_line(0, {samples}).find(R"(["latent",256])") != std::string::npos);
  const auto refused = [](const std::string& line) {
    try {
      parse_samples(line, "mix.jsonl");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(R"({"items": [["latent", 4, 1]]})").find("only text items can have labels") !=
        std::string::npos);
  CHECK(refused(R"({"items": [["latent", 0]]})").find("a latent must have at least one patch") !=
        std::string::npos);
  // Uniform over 0 and 1: 200 ± 4·10 of 400 samples have one, after their text.
  const SyntheticData data{.text_tokens = constant(4),
                           .loss_tokens = constant(1),
                           .latents = parse_distribution("uniform(0,1)"),
                           .latent_tokens = 9};
  int with = 0;
  for (const Sample& sample : draw_batch(data, 400, ImageGrid{}, 1, 0).samples) {
    if (sample.items.size() == 1) continue;
    ++with;
    CHECK((sample.items.size() == 2 && sample.items[1] == Item{Modality::latent, 9, 0}));
  }
  CHECK(std::abs(with - 200) < 40);
  CHECK(refusal([](Scenario& s) {
          s.model.modules.pop_back();
          s.model.edges.pop_back();
          std::get<SyntheticData>(s.data.source).latents = constant(1);
        }) ==
        "s.json: /data/latents: the model has no diffusion module (remove the key, or add a "
        "diffusion module)");
}

}  // namespace polyphony
