// Not a test: how long each stage of one prediction takes, as one line of JSON.
// scripts/bench_simulator runs it and reads it.
//   Seconds: the median of as many repetitions as fit into --seconds (at least one), by the wall
//   clock and of the processor (of this process and its ended children), which other programs
//   disturb less. Bytes: the largest resident size of this process, and of its simulating child,
//   after the first prediction.
//   `digest` changes when any bit of a predicted start or end does.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cxxopts.hpp>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/fold.h"
#include "shared/lower/lower.h"
#include "shared/program/stage_name.h"
#include "shared/scenario/typical_batch.h"
#include "shared/verify/verify.h"
#include "sim/runner/allocator.h"
#include "sim/runner/simulate.h"
#include "tests/sim/runner/bench_scenario.h"
#include "tests/sim/runner/prebuilt_graph.h"
#include "traces/format/chrome_json.h"
#include "traces/report/svg.h"

namespace polyphony::tests {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the peak resident bytes so far. Linux reports KiB.
std::int64_t peak_bytes(int processes) {
  rusage usage{};
  getrusage(processes, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

Seconds cpu_time(int processes) {
  rusage usage{};
  getrusage(processes, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return Seconds(of(usage.ru_utime) + of(usage.ru_stime));
}

// FNV-1a over the bits of every start and end.
std::string digest(const Timeline& timeline) {
  std::uint64_t state = 0xcbf29ce484222325ull;
  for (const OpTime& op : timeline.ops)
    for (const Seconds time : {op.start, op.end})
      state = (state ^ std::bit_cast<std::uint64_t>(time.count())) * 0x100000001b3ull;
  return std::to_string(state);
}

// A process's own processor time is known to the nanosecond, its children's to the microsecond.
Seconds cpu_time() {
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  return Seconds(static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) * 1e-9) +
         cpu_time(RUSAGE_CHILDREN);
}

class Stopwatch {
 public:
  template <class Work>
  auto time(const std::string& name, const Work& work) {
    const auto before = Clock::now();
    const Seconds cpu_before = cpu_time();
    auto result = work();
    note(name, Clock::now() - before, cpu_time() - cpu_before);
    return result;
  }
  void note(const std::string& name, Seconds wall, Seconds cpu) {
    wall_[name].push_back(wall.count());
    cpu_[name].push_back(cpu.count());
  }
  nlohmann::json wall() const { return medians(wall_); }
  nlohmann::json cpu() const { return medians(cpu_); }

 private:
  using Lists = std::map<std::string, std::vector<double>>;
  static nlohmann::json medians(const Lists& lists) {
    nlohmann::json result;
    for (auto [name, list] : lists) {
      std::sort(list.begin(), list.end());
      result[name] = list[list.size() / 2];
    }
    return result;
  }

  Lists wall_, cpu_;
};

struct Prepared {
  Scenario scenario;
  HardwareProfile profile;
  Plan plan;
  Batch batch;
};

// The steps before lowering. Stages are split by FLOPs, which takes as long as splitting by
// seconds.
Prepared prepare(const std::string& text, Stopwatch& watch) {
  Prepared in{watch.time("parse", [&] { return read_bench(text); }), {}, {}, {}};
  in.profile = shipped_profile(in.scenario.cluster).value();
  const Layout& layout = *in.scenario.layout;
  const auto no = watch.time("validate", [&] { return check_layout(in.scenario, layout); });
  POLYPHONY_CHECK(!no, no->reason);
  in.plan = watch.time("plan", [&] { return make_plan(in.scenario, layout); });
  in.batch = watch.time("batch", [&] { return typical_batch(in.scenario); });
  watch.time("order", [&] { return make_step_plan(in.scenario, layout, in.plan, in.batch); });
  return in;
}

nlohmann::json measure(const Prepared& in, bool prebuilt, bool extras, Stopwatch& watch) {
  const auto begin = Clock::now();
  const Seconds cpu_begin = cpu_time();
  const Program program = watch.time("lower", [&] {
    return lower(in.scenario, *in.scenario.layout, in.plan, in.batch, StepKind::train,
                 in.profile.stack);
  });
  const Compiled compiled =
      watch.time("compile", [&] { return std::get<Compiled>(compile(program)); });
  const CostTable costs = watch.time(
      "price", [&] { return price(program, compiled, in.scenario.cluster, in.profile); });
  const StepBounds bound =
      watch.time("estimate, first", [&] { return estimate_step(compiled, costs); });
  const auto before_tables = Clock::now();
  const Seconds cpu_before_tables = cpu_time();
  constexpr int kTables = 5;  // estimates of one graph with several tables of costs
  for (int i = 0; i < kTables; ++i)
    watch.time("estimate", [&] { return estimate_step(compiled, costs); });
  const Seconds repeated = Clock::now() - before_tables,
                cpu_repeated = cpu_time() - cpu_before_tables;
  const Seconds children_before = cpu_time(RUSAGE_CHILDREN);
  const sim::Playback playback = watch.time(
      "simulate", [&] { return std::get<sim::Playback>(sim::play(program, compiled, costs)); });
  watch.note("play", playback.wall, cpu_time(RUSAGE_CHILDREN) - children_before);
  watch.note("whole", Clock::now() - begin - repeated, cpu_time() - cpu_begin - cpu_repeated);
  nlohmann::json result = {{"ranks", program.ranks},
                           {"ops", program.ops.size()},
                           {"nodes", compiled.nodes.size()},
                           {"activities", count_activities(compiled, costs)},
                           {"estimate_step", bound.step().count()},
                           {"step", playback.timeline.makespan.count()},
                           {"digest", digest(playback.timeline)},
                           {"peak_bytes", peak_bytes(RUSAGE_SELF)},
                           {"child_peak_bytes", peak_bytes(RUSAGE_CHILDREN)}};
  if (prebuilt) {
    const PrebuiltRun other = run_prebuilt(program, compiled, costs);
    watch.note("prebuilt build", other.build, other.cpu_build);
    watch.note("prebuilt run", other.run, other.cpu_run);
    result["prebuilt_step"] = other.step.count();
  }
  if (extras) {
    const Estimate longest =
        watch.time("estimate, ops", [&] { return estimate(program, compiled, costs); });
    POLYPHONY_CHECK(longest.step() == bound.step(), longest.step().count());
    const std::size_t faults = watch.time("verify", [&] { return verify(program).size(); });
    POLYPHONY_CHECK(faults == 0, faults << " faults");
    watch.time("hash", [&] { return hash(program); });
    watch.time("memory", [&] { return predict_memory(program, playback.timeline); });
    watch.time("names", [&] { return stage_names(program); });
    watch.time("gantt", [&] {
      return traces::svg_file(traces::gantt(program, playback.timeline, {.title = "bench"}),
                              traces::Theme::light);
    });
    result["trace_bytes"] = watch
                                .time("trace",
                                      [&] {
                                        return traces::write_trace(program, playback.timeline,
                                                                   traces::TraceKind::predicted, 0);
                                      })
                                .size();
  }
  return result;
}

// One rank per pipeline stage represents the others (fold() in shared/lower/fold.h). It is not
// simulated, because its flows would go to ranks without ops.
nlohmann::json measure_folded(const Prepared& in, Stopwatch& watch) {
  const auto begin = Clock::now();
  const Seconds cpu_begin = cpu_time();
  const Layout& layout = *in.scenario.layout;
  const Folded kept = watch.time("fold", [&] {
    return std::get<Folded>(fold(in.scenario, layout, make_plan(in.scenario, layout), in.batch));
  });
  const Program program = watch.time("lower", [&] {
    return lower(in.scenario, layout, kept.plan, kept.batch, StepKind::train, in.profile.stack);
  });
  const Compiled compiled =
      watch.time("compile", [&] { return std::get<Compiled>(compile(program)); });
  const CostTable costs = watch.time(
      "price", [&] { return price(program, compiled, in.scenario.cluster, in.profile); });
  const Estimate step =
      watch.time("estimate, ops", [&] { return estimate(program, compiled, costs); });
  const auto memory = watch.time("memory", [&] { return predict_memory(program, step.timeline); });
  watch.note("whole", Clock::now() - begin, cpu_time() - cpu_begin);
  return {{"ranks", program.ranks},
          {"ops", program.ops.size()},
          {"activities", count_activities(compiled, costs)},
          {"step", step.step().count()},
          {"digest", digest(step.timeline)},
          {"trace_bytes", 0},
          {"peak_bytes", peak_bytes(RUSAGE_SELF)},
          {"child_peak_bytes", 0}};
}

int run(int argc, char** argv) {
  cxxopts::Options options("simulator_bench", "Times every stage of one prediction.");
  BenchShape shape;
  options.add_options()("stages", "pipeline stages", cxxopts::value(shape.stages))(
      "replicas", "data-parallel replicas", cxxopts::value(shape.replicas))(
      "microbatches", "per replica", cxxopts::value(shape.microbatches))(
      "tensor", "tensor-parallel ranks", cxxopts::value(shape.tensor))(
      "blocks", "per stage", cxxopts::value(shape.blocks))("samples", "per microbatch and replica",
                                                           cxxopts::value(shape.samples))(
      "modules", "1 to 4", cxxopts::value(shape.modules))(
      "own", "the vision encoder on ranks of its own", cxxopts::value(shape.own))(
      "shard", "none, optimizer, gradients or full", cxxopts::value(shape.shard))(
      "varied", "samples of different lengths", cxxopts::value(shape.varied))(
      "prebuilt", "play the same activities as a prebuilt SimGrid graph too")(
      "extras", "verify, hash, memory and trace writing too")(
      "folded", "fold, lower, compile, price, estimate and memory of a rank a stage")(
      "seconds", "repeat for so long", cxxopts::value<double>()->default_value("0.3"))("help", "");
  const cxxopts::ParseResult arguments = options.parse(argc, argv);
  if (arguments.count("help") > 0) {
    std::cout << options.help();
    return 0;
  }
  Stopwatch watch;
  const std::string text = bench_text(shape);
  nlohmann::json result;
  const auto begin = Clock::now();
  do {
    const Prepared in = prepare(text, watch);
    const nlohmann::json one =
        arguments.count("folded") > 0
            ? measure_folded(in, watch)
            : measure(in, arguments.count("prebuilt") > 0, arguments.count("extras") > 0, watch);
    if (result.is_null()) result = one;
  } while (Seconds(Clock::now() - begin).count() < arguments["seconds"].as<double>());
  result["seconds"] = watch.wall();
  result["cpu_seconds"] = watch.cpu();
  std::cout << result.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace polyphony::tests

int main(int argc, char** argv) {
  polyphony::sim::keep_freed_memory();
  try {
    return polyphony::tests::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "simulator_bench: " << error.what() << "\n";
    return 1;
  }
}
