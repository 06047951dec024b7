// Layouts that are written for a framework and read again are the same.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/error.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/search/random_layout.h"
#include "shared/split/planned_layout.h"
#include "sim/frameworks/emit.h"
#include "sim/frameworks/import.h"
#include "sim/load/load.h"

namespace polyphony::sim {
namespace {

std::string nothing_at(const std::string& path) {
  throw InputError(path, "", "cannot be read", "check the path");
}

Scenario scenario_of(const std::string& preset) {
  return read_scenario(
      R"({"polyphony": 1, "model": {"language": {"preset": ")" + preset +
          R"("}}, "cluster": {"node": "hgx-h100", "nodes": 8}, "training": {"precision": "bf16"},
    "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 512}})",
      "s.json", nothing_at, {});
}

// Sets what no framework has to what all have.
void soften(Layout& layout, const TargetVersion& target) {
  ModuleLayout& grid = layout.modules[0];
  const bool titan = target == Target::torchtitan;
  grid.tp_pieces = 1;
  grid.cp_heads = grid.row_split = grid.ahead = 0;
  grid.offload_activations = false;
  grid.tokens = grid.cp > 1 ? TokenAssignment::zigzag : TokenAssignment::contiguous;
  if (titan || grid.cp == 1) grid.cp_attention = ContextAttention::all_gather;
  grid.recompute_blocks.clear();
  grid.blocks.clear();
  layout.planner = Planning::none;
  layout.balance = Balance::aware;
  layout.encoder_microbatches = 0;
  layout.encoder_order = EncoderOrder::in_turn;
  layout.bridge = Bridge::sharded;
  layout.placements = Layout{}.placements;
  layout.schedule =
      grid.pp > 1 && grid.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  if (grid.pp == 1) grid.vpp = 1;
  if (titan) {
    grid.shard = Shard::full;
    grid.shard_ranks = 0;
    grid.expert_tp = grid.ep > 1 && grid.tp > 1 ? 1 : 0;
    if (grid.tp > 1) grid.sp = true;
  } else if (grid.shard == Shard::full || grid.shard == Shard::gradients) {
    if (grid.pp > 1 || target == Target::ms_swift) grid.shard = Shard::optimizer;
    grid.shard_ranks = 0;
  }
  if (grid.dp() * grid.cp == 1) {
    grid.shard = Shard::none;
    grid.shard_ranks = 0;
  }
  if (grid.shard_ranks == grid.dp() * grid.cp) grid.shard_ranks = 0;
  if (grid.expert_tp == grid.tp) grid.expert_tp = 0;
}

std::string file_of(const TargetVersion& target) {
  return target == Target::megatron_lm       ? "run.sh"
         : target == Target::megatron_bridge ? "overrides.txt"
         : target == Target::ms_swift        ? "args.yaml"
         : target.before({0, 3, 0})          ? "polyphony.toml"
                                             : "polyphony_config.json";
}

}  // namespace

TEST_CASE("round trip: 200 random layouts for each framework are read again as they were written") {
  const Scenario dense = scenario_of("llama-3.1-8b"), experts = scenario_of("qwen3-30b-a3b");
  const HardwareProfile profile = load_profile(dense, {});
  for (const TargetVersion& target :
       {TargetVersion(Target::megatron_lm), TargetVersion(Target::megatron_bridge),
        TargetVersion(Target::ms_swift), TargetVersion(Target::torchtitan),
        parse_target("megatron-lm@0.12"), parse_target("torchtitan@0.2.2")}) {
    int written = 0;
    for (std::uint64_t seed = 1; seed <= 6000 && written < 200; ++seed) {
      const Scenario& scenario = seed % 2 == 0 ? dense : experts;
      std::optional<Layout> drawn = random_layout(scenario, Placement::homogeneous, seed);
      if (!drawn) continue;
      soften(*drawn, target);
      if (world_size(*drawn) != scenario.cluster.ranks()) continue;
      if (check_layout(scenario, *drawn)) continue;
      const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), *drawn);
      Emitted emitted = emit(scenario, planned.resolved, target);
      if (!emitted.cannot.empty()) continue;
      ++written;
      ImportOptions options;
      options.gpus = parse_gpus("8x8xH100");
      if (!(target == Target::megatron_lm))
        options.models = {seed % 2 == 0 ? "llama-3.1-8b" : "qwen3-30b-a3b"};
      std::vector<NamedText> files;
      for (const NamedText& file : emitted.files)
        if (file.path == file_of(target)) files.push_back(file);
      REQUIRE(files.size() == 1);
      const Imported again =
          import_settings(read_settings(files, nothing_at), options, nothing_at, "");
      CAPTURE(describe(scenario.model, planned.resolved));
      CAPTURE(files[0].text);
      CHECK(again.report.unknown.empty());
      CHECK(again.report.contradictions.empty());
      CHECK(again.illegal == "");
      const Scenario read = read_scenario(again.text, "again.json", nothing_at, {});
      REQUIRE(read.layout);
      Layout expected = planned.resolved;
      if (expected.modules[0].pp == 1) expected.modules[0].blocks = read.layout->modules[0].blocks;
      CHECK(describe(read.model, *read.layout) == describe(scenario.model, expected));
      CHECK(*read.layout == expected);
      CHECK(read.data.global_batch == scenario.data.global_batch);
      CHECK(read.data.sequence == scenario.data.sequence);
      if (target == Target::megatron_lm) {
        Module ours = scenario.model.modules[0], theirs = read.model.modules[0];
        CHECK(theirs.layers == ours.layers);
        CHECK(theirs.hidden == ours.hidden);
        CHECK(theirs.kv_heads == ours.kv_heads);
        CHECK(theirs.ffn == ours.ffn);
        CHECK(theirs.experts == ours.experts);
        CHECK(theirs.expert_ffn == ours.expert_ffn);
        CHECK(theirs.vocab == ours.vocab);
      }
    }
    CAPTURE(target_text(target));
    CHECK(written == 200);
  }
}

TEST_CASE("round trip: torchtitan's schedules by their names") {
  const Scenario scenario = scenario_of("llama-3.1-8b");
  const HardwareProfile profile = load_profile(scenario, {});
  struct Named {
    ScheduleKind kind;
    int vpp;
    const char* name;
  };
  for (const auto& [kind, vpp, name] :
       {Named{ScheduleKind::gpipe, 1, "GPipe"}, Named{ScheduleKind::gpipe, 2, "LoopedBFS"},
        Named{ScheduleKind::one_f_one_b, 1, "1F1B"},
        Named{ScheduleKind::interleaved, 2, "Interleaved1F1B"},
        Named{ScheduleKind::interleaved_zero_bubble, 2, "InterleavedZeroBubble"},
        Named{ScheduleKind::zero_bubble_v, 2, "ZBVZeroBubble"},
        Named{ScheduleKind::dualpipe_v, 2, "DualPipeV"}}) {
    CAPTURE(name);
    ModuleLayout grid;
    grid.ranks = 64;
    grid.pp = 4;
    grid.vpp = vpp;
    grid.shard = Shard::full;
    Layout layout;
    layout.modules = {grid};
    layout.schedule = kind;
    layout.microbatches = 16;
    REQUIRE_FALSE(check_layout(scenario, layout));
    const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
    const Emitted emitted = emit(scenario, planned.resolved, Target::torchtitan);
    REQUIRE(emitted.cannot.empty());
    CHECK(emitted.arguments["parallelism.pipeline_parallel_schedule"] == name);
    ImportOptions options;
    options.gpus = parse_gpus("8x8xH100");
    options.models = {"llama-3.1-8b"};
    std::vector<NamedText> files;
    for (const NamedText& file : emitted.files)
      if (file.path == file_of(Target::torchtitan)) files.push_back(file);
    const Imported again =
        import_settings(read_settings(files, nothing_at), options, nothing_at, "");
    const Scenario read = read_scenario(again.text, "again.json", nothing_at, {});
    REQUIRE(read.layout);
    CHECK(read.layout->schedule == kind);
    CHECK(read.layout->modules[0].vpp == vpp);
    // LoopedBFS runs its backwards in another order than GPipe does.
    CHECK(again.report.approximated.empty() == (name != std::string("LoopedBFS")));
  }
}

TEST_CASE("emit: what a framework cannot run is named") {
  const Scenario dense = scenario_of("llama-3.1-8b");
  Layout layout;
  ModuleLayout grid;
  grid.ranks = 64;
  grid.tp = 2;
  grid.sp = true;
  grid.cp = 2;
  grid.tokens = TokenAssignment::balanced;
  layout.modules = {grid};
  layout.microbatches = 2;
  const auto cannot = [&](const TargetVersion& target) {
    std::string all;
    for (const std::string& what : emit(dense, layout, target).cannot) all += what + "\n";
    return all;
  };
  CHECK(cannot(Target::megatron_lm).find("balanced") != std::string::npos);
  layout.modules[0].tokens = TokenAssignment::zigzag;
  CHECK(cannot(Target::megatron_lm).empty());
  layout.modules[0].recompute = Recompute::full;
  layout.modules[0].recompute_blocks = {3, 9};
  CHECK(cannot(Target::megatron_lm).find("blocks 3 to 8") != std::string::npos);
  layout.modules[0].recompute_blocks = {0, 9};
  CHECK(cannot(Target::megatron_lm).empty());  // method block
  CHECK(cannot(Target::torchtitan).find("some blocks") != std::string::npos);
  layout.modules[0].shard = Shard::optimizer;
  CHECK(cannot(Target::torchtitan).find("ZeRO-1") != std::string::npos);
  layout.schedule = ScheduleKind::zero_bubble_v;
  layout.modules[0].pp = 2;
  layout.modules[0].vpp = 2;
  CHECK(cannot(Target::megatron_lm).find("zb-v") != std::string::npos);
}

}  // namespace polyphony::sim
