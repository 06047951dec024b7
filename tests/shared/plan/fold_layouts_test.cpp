// Layouts whose modules have grids of their own, folded and unfolded.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/fold.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// Two nodes of eight; the fabric is slow, so that bridges weigh as much as their ends.
Scenario scenario_of(const std::string& model, const std::string& data, const std::string& layout) {
  const std::string text = R"({"polyphony": 1, "about": "Sizes chosen for speed. Source: none.",
      "model": {)" + model +
                           R"(},
      "cluster": {"node": "hgx-h100", "nodes": 4, "nic": "2Gbps"},
      "data": {"source": "synthetic", "text": {"tokens": 64}, )" +
                           data + R"(},
      "layout": )" + layout +
                           R"(, "training": {"precision": "bf16"}})";
  return read_scenario(text, "fold.json", test::file_text);
}

const char* kVision = R"("vision": {"layers": 2, "hidden": 64, "heads": 8, "ffn": 128, "patch": 4,
    "image_size": 16}, "projector": {"from": "vision", "merge": "2x2"})";
const char* kAudio = R"("audio": {"layers": 2, "hidden": 64, "heads": 8, "ffn": 128, "mel_bins": 8,
    "audio_tokens": 8}, "audio_projector": {"kind": "projector", "from": "audio", "merge": 2,
    "hidden": 0})";
const char* kDiffusion = R"("diffusion": {"from": "language", "layers": 2, "hidden": 64, "heads": 8,
    "ffn": 128, "patch": 2, "latent_channels": 4, "latent_tokens": 16})";

std::string language(const std::string& from) {
  return R"("language": {"from": [)" + from + R"(], "layers": 8, "hidden": 128, "heads": 8,
      "kv_heads": 8, "ffn": 256, "vocab": 512})";
}
std::string one_encoder() { return std::string(kVision) + ", " + language(R"("projector")"); }
std::string all_kinds() {
  return std::string(kVision) + ", " + kAudio + ", " +
         language(R"("projector", "audio_projector")") + ", " + kDiffusion;
}

struct Predicted {
  Program program;
  Estimate estimate;
  std::vector<RankMemory> memory;
  Bytes worst() const {
    Bytes most{};
    for (const RankMemory& of : memory) most = std::max(most, of.peak);
    return most;
  }
};

Predicted predicted(const Scenario& scenario, const Plan& plan, const Batch& batch) {
  const HardwareProfile profile = *find_profile(default_profile("H100"));
  Predicted result{
      lower(scenario, *scenario.layout, plan, batch, StepKind::train, profile.stack), {}, {}};
  const Compiled compiled = std::get<Compiled>(compile(result.program));
  const CostTable costs = price(result.program, compiled, scenario.cluster, profile);
  result.estimate = estimate(result.program, compiled, costs);
  result.memory = predict_memory(result.program, result.estimate.timeline);
  return result;
}

// `ranks`: that have ops. Flows are rounded to whole bytes, closed forms are not.
void compare(const std::string& model, const std::string& data, const std::string& layout,
             int ranks, double tolerance = 1e-6) {
  CAPTURE(layout);
  const Scenario scenario = scenario_of(model, data, layout);
  const auto refused = check_layout(scenario, *scenario.layout);
  REQUIRE_MESSAGE(!refused.has_value(), refused->reason);
  const Plan plan = make_plan(scenario, *scenario.layout);
  const Batch batch = typical_batch(scenario);
  const Predicted whole = predicted(scenario, plan, batch);
  const auto outcome = fold(scenario, *scenario.layout, plan, batch);
  const auto* no = std::get_if<Infeasible>(&outcome);
  REQUIRE_MESSAGE(no == nullptr, no->reason);
  const Folded& kept = std::get<Folded>(outcome);
  const Predicted folded = predicted(scenario, kept.plan, kept.batch);
  CHECK(folded.estimate.longest_path.count() ==
        doctest::Approx(whole.estimate.longest_path.count()).epsilon(tolerance));
  CHECK(folded.estimate.busiest_stream.count() ==
        doctest::Approx(whole.estimate.busiest_stream.count()).epsilon(1e-9));
  CHECK(folded.worst() == whole.worst());
  int with_ops = 0;
  for (std::size_t rank = 0; rank < folded.program.rank_ops.size(); ++rank) {
    if (folded.program.rank_ops[rank].size() == 0) continue;
    ++with_ops;
    CHECK(folded.memory[rank].peak == whole.memory[rank].peak);
  }
  CHECK(with_ops == ranks);
}

constexpr const char* kImages = R"("images": {"per_sample": 2}, "global_batch": 64)";
constexpr const char* kAll = R"("images": {"per_sample": 1}, "audio": {"per_sample": 2},
    "latents": {"per_sample": 1}, "global_batch": 64)";

}  // namespace

TEST_CASE("folded as unfolded: encoders on ranks of their own") {
  const auto check = [](const std::string& vision, const std::string& language,
                        const std::string& more, int ranks) {
    compare(one_encoder(), kImages,
            R"({"placement": "non-colocated", "microbatches": 4, )" + more +
                R"( "vision": {"ranks": {"first": 0, "count": 16}, )" + vision +
                R"(}, "language": {"ranks": {"first": 16, "count": 16}, )" + language + "}}",
            ranks);
  };
  // Of each module a rank a stage.
  check(R"("tp": 1)", R"("tp": 2, "pp": 2)", "", 1 + 2);
  check(R"("tp": 2)", R"("tp": 4, "pp": 4)", "", 1 + 4);
  check(R"("tp": 8)", R"("tp": 1, "pp": 2)", "", 1 + 2);
  check(R"("tp": 4, "sp": true)", R"("tp": 2, "pp": 2, "sp": true)", "", 1 + 2);
  check(R"("tp": 1)", R"("tp": 4, "pp": 2, "sp": true)", "", 1 + 2);
  check(R"("tp": 2, "sp": true)", R"("tp": 4, "pp": 2)", "", 1 + 2);
  check(R"("tp": 1)", R"("tp": 4, "pp": 2, "sp": true)", R"("bridge": "leader",)", 1 + 2);
  check(R"("tp": 2)", R"("tp": 4, "pp": 2)", R"("bridge": "leader",)", 1 + 2);
  check(R"("tp": 2, "pp": 2)", R"("tp": 2, "pp": 4, "shard": "full")", "", 2 + 4);
  check(R"("tp": 1, "shard": "full")", R"("tp": 2, "pp": 2, "vpp": 2, "shard": "optimizer")",
        R"("schedule": "interleaved",)", 1 + 2);
  check(R"("tp": 1)", R"("tp": 2, "pp": 4)", R"("schedule": "zero-bubble",)", 1 + 4);
  check(R"("tp": 2)", R"("tp": 2, "pp": 2, "cp": 2)", "", 1 + 2 * 2);
}

TEST_CASE("folded as unfolded: encoders on the language module's ranks") {
  const auto check = [](const std::string& vision, const std::string& language,
                        const std::string& more, int ranks, double tolerance = 1e-6) {
    compare(one_encoder(), kImages,
            R"({"placement": "colocated", "microbatches": 4, )" + more + R"( "vision": {)" +
                vision + R"(}, "language": {)" + language + "}}",
            ranks, tolerance);
  };
  check(R"("tp": 1)", R"("tp": 4)", "", 1);  // 16 samples a work, 32 lanes
  check(R"("tp": 4)", R"("tp": 2)", "", 1);
  check(R"("tp": 2)", R"("tp": 4, "shard": "full", "sp": true)", "", 1);
  check(R"("tp": 1)", R"("tp": 2, "cp": 2)", "", 4);
  // Before a pipeline a kept rank encodes for kept ones, nearer by.
  constexpr double kNearer = 5e-3;
  check(R"("tp": 1)", R"("tp": 2, "pp": 4)", "", 4, kNearer);
  check(R"("tp": 2)", R"("tp": 4, "pp": 2)", R"("encoder_microbatches": 2,)", 2, kNearer);
  check(R"("tp": 4)", R"("tp": 2, "pp": 2)", "", 2, kNearer);
  check(R"("tp": 1)", R"("tp": 2, "pp": 4)", R"("schedule": "zero-bubble",)", 4, kNearer);
  check(R"("tp": 2)", R"("tp": 2, "pp": 4, "sp": true)", R"("bridge": "leader",)", 4, kNearer);
}

TEST_CASE("folded as unfolded: two encoders and a diffusion module") {
  compare(all_kinds(), kAll,
          R"({"placement": "non-colocated", "microbatches": 4,
              "vision": {"ranks": {"first": 0, "count": 8}, "tp": 2},
              "audio": {"ranks": {"first": 8, "count": 4}},
              "language": {"ranks": {"first": 12, "count": 16}, "tp": 2, "pp": 2},
              "diffusion": {"ranks": {"first": 28, "count": 4}, "tp": 1}})",
          1 + 1 + 2 + 1);
  compare(all_kinds(), kAll,
          R"({"placement": "mixed", "microbatches": 4,
              "vision": {"ranks": {"first": 0, "count": 8}, "tp": 2},
              "audio": {"ranks": {"first": 0, "count": 8}},
              "language": {"ranks": {"first": 8, "count": 16}, "tp": 2, "pp": 2, "sp": true},
              "diffusion": {"ranks": {"first": 24, "count": 8}, "tp": 2}})",
          1 + 2 + 1);
  compare(all_kinds(), kAll,
          R"({"placement": "mixed", "microbatches": 4,
              "vision": {"ranks": {"first": 8, "count": 16}, "tp": 2},
              "audio": {"ranks": {"first": 0, "count": 8}},
              "language": {"ranks": {"first": 8, "count": 16}, "tp": 2, "pp": 2},
              "diffusion": {"ranks": {"first": 24, "count": 8}, "tp": 2}})",
          1 + 2 + 1, 5e-3);
  compare(all_kinds(), kAll,
          R"({"placement": "mixed", "microbatches": 4, "encoder_order": "interleaved",
              "vision": {"ranks": {"first": 8, "count": 16}, "tp": 2, "pp": 2},
              "audio": {"ranks": {"first": 0, "count": 8}},
              "language": {"ranks": {"first": 8, "count": 16}, "tp": 2, "pp": 2},
              "diffusion": {"ranks": {"first": 8, "count": 16}, "tp": 2, "pp": 2}})",
          1 + 2);
}

TEST_CASE("folded nearly as unfolded: lanes with unequal numbers of samples or items") {
  const auto check = [](const std::string& vision, const std::string& language, int microbatches,
                        int ranks) {
    compare(one_encoder(), kImages,
            R"({"placement": "non-colocated", "microbatches": )" + std::to_string(microbatches) +
                R"(, "vision": {"ranks": {"first": 0, "count": 8}, )" + vision +
                R"(}, "language": {"ranks": {"first": 8, "count": 24}, )" + language + "}}",
            ranks, 1e-2);
  };
  check(R"("tp": 1)", R"("tp": 4, "pp": 2)", 4, 1 + 2);  // 64 samples over 3 lanes, 4 microbatches
  check(R"("tp": 2)", R"("tp": 2, "pp": 3)", 5, 1 + 3);  // unequal microbatches, too
  check(R"("tp": 1)", R"("tp": 8, "pp": 1)", 21, 1 + 1);
  check(R"("tp": 1, "spread": "images")", R"("tp": 4, "pp": 2)", 4, 1 + 2);
  check(R"("tp": 1, "spread": "images")", R"("tp": 4, "pp": 6)", 4, 1 + 6);
}

TEST_CASE("folded as unfolded: context-parallel ranks in one pipeline") {
  for (const char* tokens : {"contiguous", "zigzag", "balanced"})
    for (const char* sp : {"false", "true"})
      compare(one_encoder(), kImages,
              std::string(R"({"placement": "homogeneous", "microbatches": 4, "all": {"tp": 2,
                  "cp": 2, "pp": 2, "sp": )") +
                  sp + R"(, "tokens": ")" + tokens + R"("}})",
              4);
}

}  // namespace polyphony
