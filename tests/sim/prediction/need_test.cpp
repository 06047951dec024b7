// The memory that a prediction needs, known before it is computed; the free memory of a machine;
// sizes at the limits of scenario files.
#include "sim/prediction/need.h"

#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>

#include "shared/check/check.h"
#include "shared/files/free_memory.h"
#include "shared/files/whole.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "sim/runner/allocator.h"
#include "sim/step_answers/step.h"
#include "tests/exec/support/temp_folder.h"
#include "tests/shared/support/example_models.h"
#include "tests/sim/runner/bench_scenario.h"
#include "tests/sim/support/child.h"

namespace polyphony::sim {
namespace {

using exec::testing::spill;
using exec::testing::TempFolder;
using tests::BenchShape;

double ratio(const Scenario& scenario) {
  const Layout& layout = *scenario.layout;
  const Program program =
      lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
  return need_of(scenario, layout, {}).ops / static_cast<double>(program.ops.size());
}

void check_ops(const Scenario& scenario) {
  const double found = ratio(scenario);
  CHECK(found > 1 / 1.5);
  CHECK(found < 1.5);
}

TEST_SUITE("need") {
  TEST_CASE("the ops of a step are estimated to a factor of 1.5 without lowering it") {
    for (const char* shard : {"none", "optimizer", "gradients", "full"})
      for (const BenchShape& shape :
           {BenchShape{.stages = 1, .replicas = 8, .microbatches = 1},
            BenchShape{.stages = 1, .replicas = 64, .microbatches = 4},
            BenchShape{.stages = 8, .microbatches = 64},
            BenchShape{.stages = 4, .replicas = 8, .microbatches = 8},
            BenchShape{.stages = 4, .microbatches = 16, .tensor = 2},
            BenchShape{.stages = 8, .microbatches = 16, .modules = 3},
            BenchShape{.stages = 8, .microbatches = 16, .modules = 4},
            BenchShape{.stages = 2, .replicas = 8, .microbatches = 8, .modules = 2, .own = true}}) {
        BenchShape sharded = shape;
        sharded.shard = shard;
        CAPTURE(shard);
        CAPTURE(shape.stages);
        CAPTURE(shape.replicas);
        CAPTURE(shape.modules);
        check_ops(tests::bench_scenario(sharded));
      }
    for (const char* name :
         {"rehearse_8", "tiny_all", "tiny_colocated", "tiny_uneven", "vlm_12b_70b_h100",
          "tiny_fan_out", "tiny_frozen", "easy_vqa_4_ranks"}) {
      const std::string file = std::string("scenarios/") + name + ".json";
      const Scenario scenario = read_scenario(read_file(file), file, read_file);
      if (!scenario.layout || !std::holds_alternative<SyntheticData>(scenario.data.source))
        continue;
      CAPTURE(name);
      check_ops(scenario);
    }
  }

#ifndef POLYPHONY_THREAD_CONTEXTS  // sanitizers use additional memory
  TEST_CASE("an encoder on the ranks of an interleaved pipeline, in many parts") {
    // 4 parts of 2 microbatches each: as many as the pipeline has ranks, and no fewer.
    Scenario scenario = examples::small_on_cpu(2, 8);
    ModuleLayout encoder, language;
    encoder.ranks = language.ranks = 2;
    language.pp = language.vpp = 2;
    const Layout layout{.placement = Placement::colocated,
                        .modules = {encoder, encoder, language},
                        .schedule = ScheduleKind::interleaved,
                        .microbatches = 8,
                        .encoder_microbatches = 4};
    scenario.data.global_batch = 64;
    Layout many = layout;
    many.microbatches = 64;
    many.encoder_microbatches = 16;
    REQUIRE_FALSE(check_layout(scenario, many));
    CHECK(need_of(scenario, many, {}).ops > 6 * need_of(scenario, layout, {}).ops);
  }

  TEST_CASE("the memory of an estimate is predicted to a factor of 2.5") {
    for (const BenchShape& shape :
         {BenchShape{.stages = 8, .microbatches = 4096},
          BenchShape{.stages = 8, .replicas = 64, .microbatches = 64},
          BenchShape{.stages = 1, .replicas = 65536, .microbatches = 1},
          BenchShape{.stages = 2, .replicas = 512, .microbatches = 8, .shard = "full"}}) {
      const Scenario scenario = tests::bench_scenario(shape);
      const Layout& layout = *scenario.layout;
      const auto profile = shipped_profile(scenario.cluster).value();
      const std::string more = run_in_child([&] {
        keep_freed_memory();
        malloc_trim(0);
        rusage before{}, after{};
        getrusage(RUSAGE_SELF, &before);
        const auto outcome = answer_step(scenario, layout, typical_batch(scenario), profile,
                                         {.predictor = Predictor::estimate});
        getrusage(RUSAGE_SELF, &after);
        return std::to_string(after.ru_maxrss - before.ru_maxrss);  // KiB on Linux
      });
      const Need need = need_of(scenario, layout, {.predictor = Predictor::estimate});
      const double found = static_cast<double>(need.bytes.value) / (std::stod(more) * 1024);
      CAPTURE(shape.stages);
      CAPTURE(shape.replicas);
      CHECK(found > 1 / 2.5);
      CHECK(found < 2.5);
    }
  }
#endif

  TEST_CASE("a prediction too large for memory is refused with its size and what would fit") {
    const Scenario scenario = tests::bench_scenario({.stages = 8, .microbatches = 64});
    const Layout& layout = *scenario.layout;
    const Need played = need_of(scenario, layout, {});
    const Need estimated = need_of(scenario, layout, {.predictor = Predictor::estimate});
    CHECK(estimated.bytes < played.bytes);
    CHECK(!check_need(scenario, layout, {}, played.bytes));
    CHECK(!check_need(scenario, layout, {}, Bytes(0)));  // not known
    const auto no = check_need(scenario, layout, {}, played.bytes - Bytes(1));
    REQUIRE(no);
    CHECK(no->reason.find("this machine has ") != std::string::npos);
    CHECK(no->reason.find("(--estimate needs about ") != std::string::npos);
    const auto many = check_need(scenario, layout, {.copies = 4}, played.bytes);
    REQUIRE(many);
    CHECK(many->reason.find("4 at a time") != std::string::npos);
    CHECK(many->reason.find("(--jobs 1 needs about ") != std::string::npos);
    const auto text = check_need(scenario, layout, {.trace = true}, played.bytes);
    REQUIRE(text);
    CHECK(text->reason.find("(without --trace it needs about ") != std::string::npos);
    const auto none = check_need(scenario, layout, {}, Bytes(1));
    REQUIRE(none);
    CHECK(none->reason.find("(memory is proportional to ranks and microbatches") !=
          std::string::npos);
  }

  TEST_CASE("a step with too many ops is refused on any machine before it is lowered") {
    // 1,000 stages, 1,024 microbatches, 8 replicas: 8,000 ranks of 1,024 x (2 actions + 4 ends of
    // messages), but for the two ends of the pipeline: 49 million ops.
    Scenario scenario =
        tests::bench_scenario({.stages = 1000, .replicas = 8, .microbatches = 1024, .blocks = 1});
    const double ops = need_of(scenario, *scenario.layout, {}).ops;
    CHECK(ops == doctest::Approx(8000 * 1024 * 6).epsilon(0.01));
    CHECK(check_need(scenario, *scenario.layout, {}, Bytes(14LL << 30)));
    scenario.layout->microbatches = 1 << 20;
    const auto no = check_need(scenario, *scenario.layout, {}, Bytes(INT64_MAX));
    REQUIRE(no);
    CHECK(no->reason.find("more ops than a Program can contain") != std::string::npos);
  }

  TEST_CASE("free memory is the least of the machine's and its control groups'") {
    const TempFolder root;
    CHECK(free_memory(root.path()) == Bytes(0));
    spill(root / "proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
    CHECK(free_memory(root.path()) == Bytes(8000 * 1024));
    spill(root / "proc/self/cgroup", "0::/slice/job\n");
    spill(root / "sys/fs/cgroup/slice/job/memory.max", "max\n");
    spill(root / "sys/fs/cgroup/slice/job/memory.current", "1000000\n");
    CHECK(free_memory(root.path()) == Bytes(8000 * 1024));
    spill(root / "sys/fs/cgroup/slice/memory.max", "5000000\n");
    spill(root / "sys/fs/cgroup/slice/memory.current", "3000000\n");
    spill(root / "sys/fs/cgroup/slice/memory.stat", "anon 7\ninactive_file 500000\n");
    CHECK(free_memory(root.path()) == Bytes(2500000));
    spill(root / "proc/self/cgroup", "12:cpu:/a\n7:memory:/of/the/host\n");
    spill(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", "4000000\n");
    spill(root / "sys/fs/cgroup/memory/memory.usage_in_bytes", "3900000\n");
    CHECK(free_memory(root.path()) == Bytes(100000));
    CHECK(free_memory().value > 0);
  }

  TEST_CASE("a simulating child without memory is the caller's std::bad_alloc") {
    CHECK_THROWS_AS(run_in_child([]() -> std::string { throw std::bad_alloc(); }), std::bad_alloc);
  }

  // Positions and counts one above the range of 16 bits, and the largest allowed in scenario files.
  TEST_CASE("replicas, microbatches and samples beyond 16 bits are predicted") {
    const auto predicted = [](const BenchShape& shape, std::size_t works) {
      const Scenario scenario = tests::bench_scenario(shape);
      const auto profile = shipped_profile(scenario.cluster).value();
      const auto outcome = predict(scenario, *scenario.layout, typical_batch(scenario), profile,
                                   Predictor::estimate);
      const Prediction& result = std::get<Prediction>(outcome);
      CHECK(result.program.works.size() == works);
      const Work& last = result.program.works.back();
      CHECK(last.samples.end == result.program.batch.samples.size());
      CHECK(result.memory.size() == result.program.ranks);
      return last;
    };
    const Work lane =
        predicted({.stages = 1, .replicas = 65544, .microbatches = 1, .blocks = 1}, 65544);
    CHECK(lane.lane == 65543);
    const Work microbatch = predicted({.stages = 8, .microbatches = 65537, .blocks = 1}, 65537);
    CHECK(microbatch.index == 65536);
    const Work sample =
        predicted({.stages = 8, .microbatches = 1, .blocks = 1, .samples = 1 << 20}, 1);
    CHECK(sample.samples.size() == 1 << 20);
  }

  // 131,072 for the encoder, seven stages of as many for the decoder.
  TEST_CASE("1,048,576 ranks of two grids fold into one rank per stage") {
    const Scenario scenario = tests::bench_scenario({.stages = 7,
                                                     .replicas = 1 << 17,
                                                     .microbatches = 2,
                                                     .blocks = 1,
                                                     .modules = 2,
                                                     .own = true});
    const auto profile = shipped_profile(scenario.cluster).value();
    const auto outcome = predict_folded(scenario, *scenario.layout, profile);
    const Prediction& result = std::get<Prediction>(outcome);
    CHECK(result.program.ranks == 1 << 20);
    CHECK(result.lanes == 1 << 17);
    CHECK(std::count_if(result.program.rank_ops.begin(), result.program.rank_ops.end(),
                        [](const Range& ops) { return ops.size() > 0; }) == 1 + 7);
  }

  TEST_CASE("1,048,576 replicas fold into one") {
    const Scenario scenario =
        tests::bench_scenario({.stages = 1, .replicas = 1 << 20, .microbatches = 1, .blocks = 1});
    const auto profile = shipped_profile(scenario.cluster).value();
    const auto outcome = predict_folded(scenario, *scenario.layout, profile);
    const Prediction& result = std::get<Prediction>(outcome);
    CHECK(result.lanes == 1 << 20);
    const auto& groups = result.program.groups;
    CHECK(std::any_of(groups.begin(), groups.end(), [](const Group& group) {
      return group.kind == GroupKind::data && group.members.size() == 1 << 20;
    }));
  }
}

}  // namespace
}  // namespace polyphony::sim
