// The training loop on devices that run asynchronously to the host: the next step is queued before
// the last one's results are read, and a run writes the same files as on CPUs.
#include <doctest/doctest.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <future>
#include <set>
#include <sstream>

#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/system/process.h"
#include "shared/lower/lower.h"
#include "tests/exec/device_double/queued_transport.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/support/live_runs.h"
#include "traces/kineto/profiled_ops.h"

namespace polyphony::exec::testing {

namespace {

struct Run {
  TrainResult result;
  std::vector<traces::StepMetrics> steps;
  std::string profile;  // of rank 0, if one step was recorded
};

Run train_on(bool queued, const Scenario& scenario, TrainOptions options) {
  const Layout& layout = *scenario.layout;
  const std::unique_ptr<Dataset> dataset = open_dataset(scenario, "");
  const TempFolder folder;
  options.out = folder.path() + "/run";
  Run run;
  exec::run_in_process(world_size(layout), [&](Transport& inner) {
    TrainOptions mine = options;
    std::optional<QueuedTransport> behind;
    if (queued) {
      mine.device = queued_device(static_cast<int>(inner.rank().value));
      behind.emplace(inner);
    }
    Transport& transport = behind ? static_cast<Transport&>(*behind) : inner;
    const TrainResult result = train(transport, scenario, layout, *dataset, mine);
    if (inner.rank() == Rank(0)) run.result = result;
  });
  for (const auto& line : traces::parse_metrics(slurp(options.out + "/metrics.jsonl")).lines)
    if (const auto* step = std::get_if<traces::StepMetrics>(&line)) run.steps.push_back(*step);
  for (const auto& [step, files] : RunPaths{options.out}.profiles()) run.profile = slurp(files[0]);
  return run;
}

Scenario two_stages() {
  const std::string file = "scenarios/tiny.json";
  return read_scenario(slurp(file), file, slurp);
}

struct CountedRanges : torch::profiler::impl::ProfilerStubs {
  mutable std::vector<std::string> opened;
  mutable std::size_t closed = 0;
  void record(c10::DeviceIndex*, torch::profiler::impl::ProfilerVoidEventStub*,
              std::int64_t*) const override {}
  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub*,
                const torch::profiler::impl::ProfilerVoidEventStub*) const override {
    return 0;
  }
  void mark(const char*) const override {}
  void rangePush(const char* name) const override { opened.emplace_back(name); }
  void rangePop() const override { ++closed; }
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}
};

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "training on an asynchronous device writes the same files as training on CPUs, traces too") {
    const Scenario scenario = two_stages();
    TrainOptions options;
    options.steps = 7;
    options.trace_first = 2;
    options.trace_last = 4;
    delay_kernels(50, 3);
    const Run behind = train_on(true, scenario, options);
    delay_kernels(0, 0);
    const Run here = train_on(false, scenario, options);
    REQUIRE(behind.steps.size() == 7);
    REQUIRE(here.steps.size() == 7);
    for (std::size_t i = 0; i < 7; ++i) {
      CHECK(behind.steps[i].step == static_cast<std::int64_t>(i));
      CHECK(behind.steps[i].loss == doctest::Approx(here.steps[i].loss).epsilon(1e-5));
      CHECK(behind.steps[i].gradient_norm ==
            doctest::Approx(here.steps[i].gradient_norm).epsilon(1e-4));
      CHECK(behind.steps[i].seconds.count() > 0);
    }
    CHECK(behind.result.loss == behind.steps.back().loss);
    REQUIRE(behind.result.memory);
    CHECK(behind.result.memory->used > Bytes(0));
    CHECK(behind.result.memory->held >= behind.result.memory->used);
    CHECK_FALSE(here.result.memory);
  }

  // One rank, because Kineto records a process. The device's kernels of step 2 have all ended in it,
  // although they are late.
  TEST_CASE("a step on an asynchronous device is recorded alone") {
    Scenario scenario = two_stages();
    for (ModuleLayout& grid : scenario.layout->modules) {
      grid = ModuleLayout{};
      grid.ranks = 1;
    }
    REQUIRE(world_size(*scenario.layout) == 1);
    TrainOptions options;
    options.steps = 4;
    const Run plain = train_on(true, scenario, options);
    options.kineto = parse_step_list("2", "--kineto");
    quieten_kineto();
    delay_kernels(50, 3);
    const Run run = train_on(true, scenario, options);
    delay_kernels(0, 0);
    REQUIRE(run.steps.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(run.steps[i].loss == plain.steps[i].loss);
    const traces::ProfiledOps found = traces::read_profiled_ops(run.profile, "p");
    CHECK(found.step == 2);
    CHECK(found.on_device);
    CHECK(found.count > 0);
    std::set<std::int64_t> ops;
    for (const traces::ProfiledOp& op : found.ops) ops.insert(op.op);
    CHECK(static_cast<std::int64_t>(ops.size()) == found.count);
  }

  TEST_CASE("a step's data is loaded while the device still computes") {
    const Case c = parity_cases().front();
    REQUIRE(world_size(c.layout) == 1);
    const Scenario scenario = make_scenario(c);
    const auto dataset = make_dataset(c, scenario);
    const Plan plan = make_plan(scenario, c.layout);
    const torch::Device device = queued_device(0);
    exec::run_in_process(1, [&](Transport& transport) {
      const StepPlanner planner(transport, scenario, c.layout, plan, *dataset, Planner::each);
      StepLoader loader(planner, *dataset, 1, Rank(0), device);
      std::promise<void> done;
      queue_on_current(device, [computed = done.get_future().share()] { computed.wait(); });
      std::future<StepData> coming = std::async(std::launch::async, [&] { return loader.take(0); });
      CHECK(coming.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
      done.set_value();
      const StepData data = coming.get();
      loader.finish();
      const auto here = pack_inputs(data.program, Rank(0), *dataset, {1, 0});
      for (const auto& [work, input] : data.inputs) {
        CHECK(input.labels.cpu().equal(here.at(work).labels));
        CHECK(input.patches.cpu().equal(here.at(work).patches));
      }
    });
  }

  TEST_CASE("a step with non-finite values changes nothing, although the next one is queued") {
    // The learning rate is so large that the second step's forward overflows: from then on all
    // steps are skipped, because the weights do not change.
    Scenario scenario = two_stages();
    scenario.training.learning_rate = 1e30;
    scenario.training.warmup_steps = 0;
    TrainOptions options;
    options.steps = 5;
    const Run behind = train_on(true, scenario, options), here = train_on(false, scenario, options);
    REQUIRE(behind.steps.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(behind.steps[i].skipped == here.steps[i].skipped);
      CHECK(behind.steps[i].skipped == (i > 0));
    }
  }

  TEST_CASE(
      "a host that must not run ahead computes the same, and ranges open and close once per op") {
    const std::vector<Case> cases = parity_cases();
    const auto found = std::find_if(cases.begin(), cases.end(), [](const Case& c) {
      return c.name == "homogeneous TP1 PP2 DP1, 1f1b x4";
    });
    REQUIRE(found != cases.end());
    const Scenario scenario = make_scenario(*found);
    const auto dataset = make_dataset(*found, scenario);
    const Program program = whole_program(*found);
    const CountedRanges ranges;
    const auto* const before = torch::profiler::impl::cudaStubs();
    std::vector<double> losses;
    std::vector<std::int64_t> waits;  // host waits of the last stage
    for (const bool ahead : {true, false}) {
      double loss = 0;
      exec::run_in_process(2, [&](Transport& inner) {
        const torch::Device device = queued_device(static_cast<int>(inner.rank().value));
        QueuedTransport transport(inner);
        RunnerOptions options{.perturb = true, .device = device};
        if (!ahead) options.run_ahead = Bytes(0);
        options.ranges = ahead && inner.rank() == Rank(0);
        if (options.ranges)
          torch::profiler::impl::registerCUDAMethods(const_cast<CountedRanges*>(&ranges));
        Runner runner(transport, scenario, program, options);
        const auto inputs = pack_inputs(program, inner.rank(), *dataset, {}, device);
        take_counts(device);
        const StepScalars got = runner.train_step(
            program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, 1e-2);
        if (inner.rank() == Rank(0)) loss = got.loss;
        if (inner.rank() == Rank(1)) waits.push_back(take_counts(device).host_waits());
        drain(device);
      });
      losses.push_back(loss);
    }
    torch::profiler::impl::registerCUDAMethods(
        const_cast<torch::profiler::impl::ProfilerStubs*>(before));
    CHECK(losses[0] == losses[1]);
    // One wait for the numbers of the step; the others are before compute ops, for all except the
    // newest released buffers: those that four microbatches received and sent back.
    CHECK(waits == std::vector<std::int64_t>{1, 1 + 7});
    CHECK(ranges.opened.size() == program.ops_of(Rank(0)).size());
    CHECK(ranges.closed == ranges.opened.size());
    CHECK(std::find(ranges.opened.begin(), ranges.opened.end(),
                    describe(program, OpId(program.ops_of(Rank(0)).begin))) != ranges.opened.end());
  }
}

}  // namespace polyphony::exec::testing
