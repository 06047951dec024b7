// The answer of a sweep compared with brute force: every legal layout of small spaces is estimated,
// and simulated if its estimate (a lower bound of the simulation) could be the best. Brute force
// uses nothing of the search: no bounds, no memory screen, no neighbors.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "shared/cost/layer_costs.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/space.h"
#include "sim/answer_json/answers_json.h"
#include "sim/runner/worker_pool.h"
#include "sim/sweep/sweep.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

const std::string kSizes =
    R"("layers": 12, "hidden": 2048, "heads": 16, "kv_heads": 8, "vocab": 32000)";
const std::string kDense = R"("ffn": 5632, )" + kSizes;
const std::string kExperts =
    R"("experts": 8, "experts_per_token": 2, "expert_ffn": 2816, )" + kSizes;
const std::string kVision =
    R"("vision": {"layers": 8, "hidden": 1280, "heads": 16, "ffn": 5120, "patch": 14, "image_size": 448},
       "projector": {"from": "vision", "merge": "2x2"}, )";
const std::string kAudio =
    R"("audio": {"layers": 6, "hidden": 1024, "heads": 16, "ffn": 4096, "mel_bins": 80, "audio_tokens": 1500},
       "audio_projector": {"kind": "projector", "from": "audio", "merge": 2}, )";
const std::string kDiffusion =
    R"(, "diffusion": {"from": "language", "layers": 8, "hidden": 1024, "heads": 16, "ffn": 4096,
                       "patch": 2, "latent_channels": 4, "latent_tokens": 1024})";

std::string language(const std::string& body) { return R"("language": {)" + body + "}"; }
std::string fed(const std::string& by, const std::string& body) {
  return R"("language": {"from": [)" + by + "], " + body + "}";
}

struct SmallSpace {
  const char* name;
  std::string model;
  const char* node;
  int nodes;
  double gib;  // of a device
  const char* data;
  const char* each;    // replacement for @ in the search
  const char* search;  // lists that leave 50 to 3,000 layouts
};

const char* const kTexts = R"("text": {"tokens": 2048}, "global_batch": 16)";
const char* const kPictures =
    R"("text": {"tokens": 1024}, "images": {"per_sample": 4}, "global_batch": 16)";
const char* const kSounds =
    R"("text": {"tokens": 512}, "audio": {"per_sample": 1}, "global_batch": 32)";
const char* const kBoth =
    R"("text": {"tokens": 512}, "images": {"per_sample": 2}, "audio": {"per_sample": 1}, "global_batch": 16)";
const char* const kEight = R"("hgx-h100")";
const char* const kFourA100 = R"({"device": "A100-80", "ranks": 4})";
const char* const kFourL40S = R"({"device": "L40S", "ranks": 4})";
const char* const kFourSlow = R"({"device": "A100-80", "ranks": 4, "link": "10GB/s"})";
const char* const kState = R"("cp": 1, "sp": true, "shard": ["none", "optimizer"])";
const char* const kPlain =
    R"("cp": 1, "sp": true, "shard": "optimizer", "recompute": ["none", "full"])";

const SmallSpace kPieces{
    "dense, products in pieces over slow links",
    language(kDense),
    kFourSlow,
    2,
    2.5,
    kTexts,
    "",
    R"("language": {"tp": [2, 4], "tp_pieces": [1, 2, 4], "cp": 1, "vpp": 1, "sp": [false, true], "pp": [1, 2],
                    "shard": "optimizer", "recompute": ["none", "full"]}, "schedule": "1f1b", "microbatch": [1, 2])"};

std::vector<SmallSpace> small_spaces() {
  const std::string sees = kVision + fed(R"("projector")", kDense);
  const std::string hears = kAudio + fed(R"("audio_projector")", kDense);
  const std::string both = kVision + kAudio + fed(R"("projector", "audio_projector")", kDense);
  return {
      {"dense, 4 L40S", language(kDense), kFourL40S, 1, 6, kTexts, "",
       R"("language": {"cp": 1, "vpp": 1}, "schedule": "1f1b", "microbatch": [1, 2, 4])"},
      {"dense, sharding", language(kDense), kEight, 1, 4, kTexts, "",
       R"("language": {"cp": 1, "pp": 1, "shard_ranks": [2, 4, 0]})"},
      {"dense, virtual stages", language(kDense), kEight, 1, 8, kTexts, kState,
       R"("language": {@, "tp": [1, 2], "pp": [2, 4]}, "schedule": ["1f1b", "interleaved", "gpipe"],
          "microbatch": [1, 2])"},
      {"dense, V-shaped schedules", language(kDense), kEight, 1, 6, kTexts, kState,
       R"("language": {@, "tp": 1, "pp": [2, 4, 8], "vpp": [1, 2]})"},
      {"dense, long texts", language(kDense), kEight, 1, 16,
       R"("text": {"tokens": 32768}, "global_batch": 4)", kPlain,
       R"("language": {"pp": [1, 2], "vpp": 1, "sp": true, "shard": ["optimizer", "full"],
                       "tokens": ["contiguous", "zigzag", "balanced"]}, "schedule": "1f1b", "microbatch": 1)"},
      {"dense, long texts over slow links, every way to attend", language(kDense), kFourSlow, 2, 8,
       R"("text": {"tokens": 65536}, "global_batch": 4)", kPlain,
       R"("language": {"tp": [1, 2], "cp": [2, 4], "pp": [1, 2], "vpp": 1, "sp": true,
                       "shard": ["optimizer", "full"], "recompute": ["none", "full"]},
          "schedule": "1f1b", "microbatch": 1)"},
      kPieces,
      {"dense, 32 A100", language(kDense), R"("hgx-a100-80")", 4, 3, kTexts, kPlain,
       R"("language": {@, "vpp": 1}, "schedule": ["1f1b", "zero-bubble"], "microbatch": [1, 2])"},
      {"dense, 64 H100", language(kDense), kEight, 8, 2.5, kTexts, kPlain,
       R"("language": {"cp": [1, 2], "pp": [1, 2, 4], "vpp": [1, 3], "sp": true, "shard": ["optimizer", "full"],
                       "shard_ranks": [8, 0]}, "schedule": ["1f1b", "interleaved"], "microbatch": [1, 2])"},
      {"experts, 8 H100", language(kExperts), kEight, 1, 12, kTexts, kPlain,
       R"("language": {@, "pp": [1, 2], "vpp": 1}, "schedule": "1f1b", "microbatch": [1, 2])"},
      {"experts, 16 H200", language(kExperts), R"("hgx-h200")", 2, 6,
       R"("text": {"tokens": 4096}, "global_batch": 8)", kState,
       R"("language": {@, "pp": [1, 2, 4], "vpp": [1, 3]}, "schedule": ["1f1b", "interleaved"], "microbatch": 1)"},
      {"experts, 64 B200", language(kExperts), R"("hgx-b200")", 8, 4,
       R"("text": {"tokens": 4096}, "global_batch": 16)", kPlain,
       R"("language": {@, "pp": [1, 2, 4], "vpp": 1}, "schedule": ["1f1b", "zb-h2"], "microbatch": 1)"},
      {"pictures, homogeneous", sees, kEight, 1, 8, kPictures, kState,
       R"("placement": "homogeneous", "language": {@, "vpp": [1, 2]}, "schedule": ["1f1b", "interleaved"],
          "microbatch": [1, 2])"},
      {"pictures, colocated", sees, kEight, 1, 6, kPictures, kPlain,
       R"("placement": "colocated", "vision": {@, "tp": [1, 2]}, "language": {@, "pp": [1, 2, 4], "vpp": 1},
          "schedule": "1f1b", "microbatch": [1, 2])"},
      {"pictures, ranks of their own", sees, kEight, 1, 12, kPictures, kPlain,
       R"("placement": "non-colocated", "vision": {@, "tp": 1, "ranks": [1, 2, 3, 4]}, "language": {@, "vpp": 1},
          "schedule": ["1f1b", "eager-1f1b"], "microbatch": [1, 2])"},
      {"pictures, every placement, 16 H100", sees, kEight, 2, 8, kPictures, kPlain,
       R"("vision": {@, "tp": [1, 2], "pp": 1, "ranks": 8}, "language": {@, "tp": [1, 2, 4], "pp": [1, 2, 4], "vpp": 1},
          "schedule": "1f1b", "microbatch": [1, 2], "encoder_microbatches": 1)"},
      {"sounds, every placement", hears, kEight, 1, 8, kSounds, kPlain,
       R"("audio": {@, "tp": 1, "ranks": [1, 2]}, "language": {@, "tp": [1, 2], "vpp": 1}, "schedule": "1f1b",
          "microbatch": [1, 2], "encoder_microbatches": 1)"},
      {"two encoders, one grid or mixed", both, kEight, 1, 12, kBoth, kPlain,
       R"("placement": ["homogeneous", "mixed"], "vision": {@, "tp": [1, 2], "pp": 1, "ranks": [2, 4]},
          "audio": {@, "tp": 1, "pp": 1}, "language": {@, "vpp": 1}, "schedule": "1f1b", "microbatch": [1, 2])"},
      {"two encoders, apart or colocated", both, kEight, 1, 12, kBoth, kPlain,
       R"("placement": ["colocated", "non-colocated"], "vision": {@, "tp": [1, 2], "pp": 1, "ranks": [1, 2, 3]},
          "audio": {@, "tp": 1, "pp": 1, "ranks": 1}, "language": {@, "tp": [1, 2, 4], "vpp": 1}, "schedule": "1f1b",
          "microbatch": [1, 2], "encoder_microbatches": [1, 2])"},
      {"diffusion", language(kDense) + kDiffusion, kEight, 1, 8, kTexts, kPlain,
       R"("language": {@, "tp": [1, 2], "vpp": 1}, "diffusion": {@, "tp": [1, 2], "ranks": [2, 4]}, "schedule": "1f1b",
          "microbatch": [1, 2])"},
      {"seen and drawn, mixed", sees + kDiffusion, kEight, 1, 12, kPictures, kPlain,
       R"("placement": "mixed", "vision": {@, "tp": [1, 2], "pp": 1}, "language": {@, "vpp": 1},
          "diffusion": {@, "tp": 1, "pp": 1, "ranks": [1, 2]}, "schedule": "1f1b", "microbatch": [1, 2])"},
      {"texts of many lengths", language(kDense), kFourA100, 1, 6,
       R"~("text": {"tokens": "uniform(64,4096)"}, "sequence": 4096, "global_batch": 32)~", kPlain,
       R"("language": {"cp": 1, "vpp": 1, "sp": true}, "schedule": ["1f1b", "gpipe"], "microbatch": [1, 2])"},
  };
}

Scenario scenario_of(const SmallSpace& space) {
  const std::string nic = space.nodes > 1 ? R"(, "nic": "400Gbps")" : "";
  std::string search = space.search;
  for (std::size_t at; (at = search.find('@')) != std::string::npos;)
    search.replace(at, 1, space.each);
  Scenario scenario = read_scenario(
      R"({"polyphony": 1, "training": {"precision": "bf16"}, "model": {)" + space.model +
          R"(}, "cluster": {"node": )" + space.node + R"(, "nodes": )" +
          std::to_string(space.nodes) + nic + R"(}, "data": {"source": "synthetic", )" +
          space.data + R"(}, "search": {)" + search + "}}",
      space.name, test::file_text);
  scenario.cluster.device.memory = Bytes(static_cast<std::int64_t>(space.gib * (1 << 30)));
  scenario.search->memory_margin = 0;  // as brute force judges what fits
  return scenario;
}

struct Brute {
  std::size_t layouts = 0, fitting = 0, simulated = 0;
  Seconds best{1e300};
};

Brute brute_force(const Question& question) {
  const std::vector<Layout> layouts = candidates(question.scenario);
  const auto answers = run_on_threads(
      2, layouts.size(),
      [&](std::size_t i) { return estimate_candidate(question, layouts[i], false, {}); },
      [](std::size_t) {});
  Brute brute;
  brute.layouts = layouts.size();
  std::vector<std::pair<Seconds, std::size_t>> fitting;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    Candidate candidate;
    adopt(answers[i], candidate);
    if (candidate.why_not.empty() && candidate.figures.fits())
      fitting.push_back({candidate.estimate, i});
  }
  brute.fitting = fitting.size();
  std::sort(fitting.begin(), fitting.end());
  for (const auto& [estimate, i] : fitting) {
    if (estimate > brute.best) break;
    Candidate candidate;
    adopt(run_on_threads(
              1, 1,
              [&, at = i](std::size_t) {
                return examine_candidate(question, Predictor::simulate, layouts[at], {});
              },
              [](std::size_t) {})
              .front(),
          candidate);
    REQUIRE(candidate.why_not.empty());
    ++brute.simulated;
    if (candidate.figures.fits()) brute.best = std::min(brute.best, candidate.figures.step);
  }
  return brute;
}

}  // namespace

TEST_CASE("the best equals that of brute force in small spaces") {
  std::set<std::string> winners;
  for (const SmallSpace& space : small_spaces()) {
    const std::string name = space.name;
    CAPTURE(name);
    const Scenario scenario = scenario_of(space);
    HardwareProfile profile = *shipped_profile(scenario.cluster);
    profile.collectives = CollectiveLibrary::gloo;  // or libraries would fill these small devices
    const Batch batch = typical_batch(scenario);
    const std::vector<WorkSize> sizes = module_sizes(scenario.model, batch);
    const Brute brute = brute_force(Question(borrow_inputs(scenario, profile)));
    const Sweep found = sweep(scenario, profile, {});
    REQUIRE_FALSE(found.ranked.empty());
    const Candidate& best = found.ranked.front();
    CAPTURE(best.text);
    CHECK(brute.layouts >= 50);
    CHECK(brute.layouts <= 3000);
    CHECK(brute.fitting < brute.layouts);  // memory excludes some layouts
    CHECK(best.simulated);
    // Climbs also vary splits and ranges of recomputation, which are not in the lists.
    CHECK(best.figures.step <= brute.best * (1 + 1e-9));
    for (const auto& [placement, gap] : found.gaps) CHECK(gap == 0);
    winners.insert(best.text);
    CHECK((best.layout.modules.back().tp_pieces > 1) == (name == kPieces.name));
    if (name != kPieces.name) continue;
    Scenario turned = scenario;  // lists in another order
    turned.search->modules[0].tp_pieces = {4, 1, 2};
    const Sweep again = sweep(turned, profile, {});
    REQUIRE(again.ranked.size() == found.ranked.size());
    for (std::size_t i = 0; i < found.ranked.size(); ++i)
      CHECK(to_json(again.ranked[i], scenario.model) == to_json(found.ranked[i], scenario.model));
  }
  CHECK(winners.size() >= 15);  // questions that differ
}

// Returns all splits of the language module's blocks into this number of stages.
void each_split(int blocks, int stages, std::vector<int>& split,
                const std::function<void(const std::vector<int>&)>& use) {
  if (stages == 1) {
    split.push_back(blocks);
    use(split);
    split.pop_back();
    return;
  }
  for (int first = 1; first <= blocks - (stages - 1); ++first) {
    split.push_back(first);
    each_split(blocks - first, stages - 1, split, use);
    split.pop_back();
  }
}

TEST_CASE("a layout that fits only with another split is found: the best of all splits") {
  Scenario scenario = scenario_of(
      {"splits", language(kDense), kFourL40S, 1, 6, kTexts, "",
       R"("language": {"tp": 1, "cp": 1, "pp": 4, "vpp": 1, "shard": "none", "recompute": "none"},
          "schedule": "1f1b", "microbatch": [1, 2])"});
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  profile.collectives =
      CollectiveLibrary::gloo;  // splits are chosen by the memory of tensors alone
  const Batch batch = typical_batch(scenario);
  const std::vector<WorkSize> sizes = module_sizes(scenario.model, batch);
  const auto predicted = [&](const Layout& layout) {
    Candidate candidate;
    adopt(estimate_candidate(Question(borrow_inputs(scenario, profile)), layout, false, {}),
          candidate);
    REQUIRE(candidate.why_not.empty());
    return candidate.figures;
  };
  // One MiB less than any layout needs if stages are balanced by time.
  Bytes least(std::int64_t{1} << 50);
  for (const Layout& layout : candidates(scenario))
    least = std::min(least, predicted(layout).needed_memory());
  scenario.cluster.device.memory = least - Bytes(1 << 20);
  Seconds best(1e300);
  int splits = 0, fitting = 0;
  for (Layout layout : candidates(scenario)) {
    CHECK_FALSE(predicted(layout).fits());
    std::vector<int> split;
    each_split(12, 4, split, [&](const std::vector<int>& blocks) {
      layout.modules[0].blocks = blocks;
      const Figures found = predicted(layout);
      ++splits;
      if (!found.fits()) return;
      ++fitting;
      best = std::min(best, found.step);
    });
  }
  CHECK(splits == 2 * 165);
  REQUIRE(fitting > 0);
  SweepOptions options;
  options.predictor = Predictor::estimate;
  const Sweep found = sweep(scenario, profile, options);
  REQUIRE_FALSE(found.ranked.empty());
  CHECK(found.ranked.front().figures.fits());
  CHECK(found.ranked.front().figures.step <= best * (1 + 1e-9));
}

}  // namespace polyphony::tests
