// Runs on data of which some batches have other labels than all the others: their loss is a spike.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "exec/transport/in_process.h"
#include "exec/worker/train.h"
#include "shared/files/run_paths.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/device_double/queued_transport.h"
#include "tests/exec/support/temp_folder.h"
#include "traces/format/metrics.h"

namespace polyphony::exec::testing {
namespace {

// Synthetic samples. All labels are 0, or 63 in the bad batches.
class SpikyData : public Dataset {
 public:
  SpikyData(const Scenario& scenario, std::set<std::uint64_t> bad, std::set<std::uint64_t> removed)
      : inner_(open_dataset(scenario, "")), bad_(std::move(bad)), removed_(std::move(removed)) {}
  Batch batch(std::uint64_t step) const override {
    for (const std::uint64_t one : removed_) step += one <= step ? 1 : 0;
    Batch batch = inner_->batch(step);
    for (Sample& sample : batch.samples) sample.id = 2 * sample.id + (bad_.contains(step) ? 1 : 0);
    return batch;
  }
  std::vector<Sample> held_out() const override { return {}; }
  SampleContent content(const Sample& sample, ContentParts parts) const override {
    Sample inner = sample;
    inner.id /= 2;
    SampleContent content = inner_->content(inner, parts);
    for (std::int64_t& label : content.labels) label = sample.id % 2 == 1 ? 63 : 0;
    return content;
  }

 private:
  std::unique_ptr<Dataset> inner_;
  std::set<std::uint64_t> bad_, removed_;
};

Scenario tiny(int tp, int pp) {
  const std::string file = "scenarios/tiny.json";
  Scenario scenario = read_scenario(slurp(file), file, slurp);
  scenario.training.learning_rate = 1e-3;
  for (ModuleLayout& grid : scenario.layout->modules) {
    grid = ModuleLayout{};
    grid.tp = tp;
    grid.pp = pp;
    grid.ranks = tp * pp;
  }
  return scenario;
}

TrainOptions options(BadStepAction spikes, std::int64_t steps = 24) {
  TrainOptions chosen;
  chosen.steps = steps;
  chosen.bad_steps.spikes = spikes;
  chosen.bad_steps.window = 6;
  chosen.bad_steps.rewind_every = 5;
  return chosen;
}

struct Trained {
  TrainResult result;
  std::vector<double> losses;         // by step
  std::vector<std::int64_t> skipped;  // steps
  std::vector<traces::Rewind> rewinds;
};

Trained train_in(const std::string& folder, const Scenario& scenario, TrainOptions chosen,
                 const std::set<std::uint64_t>& bad, const std::set<std::uint64_t>& removed = {},
                 bool queued = false) {
  const SpikyData data(scenario, bad, removed);
  chosen.out = folder;
  Trained trained;
  run_in_process(world_size(*scenario.layout), [&](Transport& inner) {
    TrainOptions mine = chosen;
    std::optional<QueuedTransport> behind;
    if (queued) {
      mine.device = queued_device(static_cast<int>(inner.rank().value));
      behind.emplace(inner);
    }
    Transport& transport = behind ? static_cast<Transport&>(*behind) : inner;
    const TrainResult result = train(transport, scenario, *scenario.layout, data, mine);
    if (inner.rank() == Rank(0)) trained.result = result;
  });
  const traces::Metrics metrics = traces::parse_metrics(slurp(RunPaths{folder}.metrics()));
  CHECK(metrics.damage.empty());
  for (const traces::MetricsLine& line : metrics.lines) {
    if (const auto* rewind = std::get_if<traces::Rewind>(&line)) trained.rewinds.push_back(*rewind);
    if (const auto* step = std::get_if<traces::StepMetrics>(&line)) {
      trained.losses.push_back(step->loss);
      if (step->skipped) trained.skipped.push_back(step->step);
      CHECK(step->why == (step->skipped ? "loss" : ""));
      // The first checkpoint beside training is that of rewind_every steps; the next step has its
      // wait.
      const std::int64_t first = chosen.bad_steps.rewind_every;
      if (chosen.bad_steps.rewinds() && trained.rewinds.empty() && step->step <= first)
        CHECK((step->saving.count() > 0) == (step->step == first));
    }
  }
  return trained;
}
Trained train_anew(const Scenario& scenario, const TrainOptions& chosen,
                   const std::set<std::uint64_t>& bad, const std::set<std::uint64_t>& removed = {},
                   bool queued = false) {
  const TempFolder folder;
  return train_in(folder / "run", scenario, chosen, bad, removed, queued);
}

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
}

const std::vector<std::pair<int, int>> kLayouts{{1, 1}, {2, 1}, {1, 2}};  // tp, pp

}  // namespace

TEST_SUITE("bad steps") {
  TEST_CASE("a spike's update is left out, in every layout and on a device that runs behind") {
    const Scenario one = tiny(1, 1);
    const Trained ignored = train_anew(one, options(BadStepAction::ignore), {17});
    CHECK(ignored.skipped.empty());
    const Trained skipped = train_anew(one, options(BadStepAction::skip), {17});
    CHECK(skipped.skipped == std::vector<std::int64_t>{17});
    CHECK(skipped.result.bad_steps == "1 step was skipped (loss: 1)");
    CHECK(skipped.losses[17] == ignored.losses[17]);
    CHECK(skipped.losses[17] > 2 * skipped.losses[16]);
    CHECK(skipped.losses[18] != ignored.losses[18]);
    for (const auto& [tp, pp] : kLayouts) {
      const Trained other = train_anew(tiny(tp, pp), options(BadStepAction::skip), {17});
      CHECK(other.skipped == skipped.skipped);
      check_close(other.losses, skipped.losses);
    }
    const Trained behind =
        train_anew(tiny(1, 2), options(BadStepAction::skip), {17}, {}, /*queued=*/true);
    CHECK(behind.skipped == skipped.skipped);
    check_close(behind.losses, skipped.losses);
  }

  TEST_CASE("after a rewind a run has the bits of one whose data do not have the passed batches") {
    for (const auto& [tp, pp] : kLayouts) {
      const Scenario scenario = tiny(tp, pp);
      const Trained rewound = train_anew(scenario, options(BadStepAction::rewind), {17});
      const Trained without =
          train_anew(scenario, options(BadStepAction::ignore), {17}, {15, 16, 17});
      CHECK(rewound.losses == without.losses);
      CHECK(rewound.skipped.empty());
      REQUIRE(rewound.rewinds.size() == 1);
      CHECK(rewound.rewinds[0].step == 15);
      CHECK(rewound.rewinds[0].from == 17);
      CHECK(rewound.rewinds[0].passed_over == 3);
      CHECK(rewound.rewinds[0].why == "loss");
      CHECK(rewound.result.bad_steps == "1 rewind (loss: 1)");
    }
    const Trained behind =
        train_anew(tiny(1, 2), options(BadStepAction::rewind), {17}, {}, /*queued=*/true);
    CHECK(behind.rewinds.size() == 1);
    check_close(behind.losses, train_anew(tiny(1, 2), options(BadStepAction::rewind), {17}).losses);
  }

  TEST_CASE("a run that was stopped decides as if it had not been") {
    for (const BadStepAction action : {BadStepAction::skip, BadStepAction::rewind}) {
      const Scenario scenario = tiny(1, 2);
      const std::set<std::uint64_t> bad{17, 22};
      const Trained whole = train_anew(scenario, options(action), bad);
      // 13: before the first spike, in the middle of its window. 16: after the checkpoint to which
      // it rewinds. 19: after it.
      for (const std::int64_t first : {13, 16, 19}) {
        const TempFolder folder;
        const std::string out = folder / "run";
        train_in(out, scenario, options(action, first), bad);
        TrainOptions resumed = options(action);
        resumed.earlier = EarlierRun::resume;
        const Trained rest = train_in(out, scenario, resumed, bad);
        CHECK(rest.losses == whole.losses);
        CHECK(rest.skipped == whole.skipped);
        CHECK(rest.rewinds.size() == whole.rewinds.size());
        CHECK(rest.result.bad_steps == whole.result.bad_steps);
      }
    }
  }

  TEST_CASE("a run that is killed after a rewind, before its next checkpoint, rewinds again") {
    const Scenario scenario = tiny(1, 2);
    const Trained whole = train_anew(scenario, options(BadStepAction::rewind), {17});
    const TempFolder folder;
    const std::string out = folder / "run";
    train_in(out, scenario, options(BadStepAction::rewind, 19), {17});
    const std::string checkpoints = RunPaths{out}.checkpoints();
    CHECK(steps_in(checkpoints) == std::vector<std::int64_t>{15, 19});
    remove_checkpoint(step_folder(checkpoints, 19));
    TrainOptions resumed = options(BadStepAction::rewind);
    resumed.earlier = EarlierRun::resume;
    const Trained rest = train_in(out, scenario, resumed, {17});
    CHECK(rest.losses == whole.losses);
    REQUIRE(rest.rewinds.size() == 1);
    CHECK(rest.rewinds[0].number == 1);
  }

  TEST_CASE("a run stops after too many rewinds or skips, and its checkpoints stay as they were") {
    std::set<std::uint64_t> bad;
    for (std::uint64_t step = 17; step < 60; ++step) bad.insert(step);
    const Scenario scenario = tiny(2, 1);
    TrainOptions skips = options(BadStepAction::skip);
    skips.bad_steps.most_skips = 3;
    Trained stopped = train_anew(scenario, skips, bad);
    CHECK(stopped.skipped == std::vector<std::int64_t>{17, 18, 19});
    CHECK(stopped.result.stopped.find("step 19: its loss, ") == 0);
    CHECK(stopped.result.stopped.find("3 steps in a row") != std::string::npos);

    const TempFolder folder;
    TrainOptions rewinds = options(BadStepAction::rewind);
    rewinds.bad_steps.most_rewinds = 2;
    stopped = train_in(folder / "run", scenario, rewinds, bad);
    CHECK(stopped.rewinds.size() == 2);
    CHECK(stopped.result.steps == 16);  // step 15 is bad after the second rewind
    CHECK(stopped.result.stopped.find("after 2 rewinds") != std::string::npos);
    CHECK(steps_in(RunPaths{folder / "run"}.checkpoints()) == std::vector<std::int64_t>{10, 15});
  }

  TEST_CASE("non-finite values stop a run where that is asked for") {
    Scenario scenario = tiny(1, 2);
    scenario.training.learning_rate = 1e30;  // the second step's forward overflows
    TrainOptions chosen = options(BadStepAction::ignore, 5);
    chosen.bad_steps.non_finite = BadStepAction::stop;
    const TempFolder folder;
    chosen.out = folder / "run";
    const SpikyData data(scenario, {}, {});
    TrainResult result;
    const auto train_it = [&] {
      run_in_process(2, [&](Transport& transport) {
        const TrainResult mine = train(transport, scenario, *scenario.layout, data, chosen);
        if (transport.rank() == Rank(0)) result = mine;
      });
    };
    train_it();
    CHECK(result.stopped == "step 1: it has non-finite values");
    CHECK(result.steps == 2);
    CHECK(steps_in(RunPaths{chosen.out}.checkpoints()).empty());

    // Rewinds to the beginning do not help: the first update is as large again.
    chosen.out = folder / "again";
    chosen.bad_steps.non_finite = BadStepAction::rewind;
    train_it();
    CHECK(result.stopped == "step 1: it has non-finite values, after 3 rewinds (--max-rewinds)");
    CHECK(result.bad_steps ==
          "1 step was skipped (non-finite values: 1), 3 rewinds (non-finite values: 3)");
  }
}

}  // namespace polyphony::exec::testing
