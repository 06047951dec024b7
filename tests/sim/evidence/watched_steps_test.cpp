// Steps of a job, from metrics and from logs of frameworks.
#include "sim/evidence/watched_steps.h"

#include <doctest/doctest.h>

#include "traces/format/metrics.h"

namespace polyphony::sim {
namespace {

traces::LoggedStep timed(std::int64_t step, double seconds, int rank = -1) {
  traces::LoggedStep line;
  line.step = step;
  line.rank = rank;
  line.line = static_cast<int>(100 + step);
  line.time = Seconds(seconds);
  return line;
}

}  // namespace

TEST_CASE("metrics give a step's time, and the wait for data where steps are planned live") {
  traces::StepMetrics first{.step = 0, .loss = 2, .seconds = Seconds(0.5)}, second = first;
  second.step = 1;
  second.late_plan = false;
  second.waited = Seconds(0.25);
  second.skipped = true;
  second.why = "gradient norm";
  const WatchedJob job = job_of_metrics(traces::to_line(first) + "\n" + traces::to_line(second) +
                                        "\n" + traces::to_line(traces::Accuracy{1, 0.5, 8}) + "\n");
  REQUIRE(job.steps.size() == 2);
  CHECK(job.steps[0].phases.empty());
  CHECK(job.steps[1].time == Seconds(0.5));
  CHECK(job.steps[1].phases.at("waiting for data") == Seconds(0.25));
  CHECK(job.ranks.empty());
  CHECK(job.bad_steps == "1 step was skipped (gradient norm: 1)");
}

TEST_CASE("of a log the first line of a restart is left out, and ranks keep their own times") {
  traces::FrameworkLog log;
  log.attempts = {{timed(1, 3, 2), timed(2, 1, 2)}, {timed(2, 9, 2), timed(3, 1.5, 2)}};
  log.attempts[0][1].phases = {{"bwd_allreduce", Seconds(0.125)}, {"bwd", Seconds(0.5)}};
  log.other_ranks[0] = {timed(1, 4), timed(2, 2)};
  const WatchedJob job = job_of_log(log, {});
  REQUIRE(job.steps.size() == 3);  // 1, 2 and 3: the second attempt begins with its second line
  CHECK(job.steps[2].step == 3);
  CHECK(job.steps[1].phases == std::map<std::string, Seconds>{{"all-reduce", Seconds(0.125)}});
  CHECK(job.ranks.at(0) == std::vector<Seconds>{Seconds(4), Seconds(2)});
  CHECK(job.ranks.at(2) == std::vector<Seconds>{Seconds(3), Seconds(1), Seconds(1.5)});
}

TEST_CASE("a rate of samples is a time only if the samples of a step are known") {
  traces::FrameworkLog log;
  log.attempts = {{timed(1, 3), timed(2, 1)}};
  log.attempts[0][1].time.reset();
  log.attempts[0][1].samples_per_second = 16;
  CHECK(line_without_time(log, {}) == 102);
  CHECK(job_of_log(log, {}).steps.size() == 1);
  const traces::StepWork work{.tokens = 0, .samples = 8, .ranks = 1};
  CHECK_FALSE(line_without_time(log, work));
  CHECK(job_of_log(log, work).steps[1].time == Seconds(0.5));  // 8 samples at 16 a second
}

}  // namespace polyphony::sim
