#include "sim/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "shared/plan/plan.h"
#include "shared/statistics.h"
#include "shared/text/figure_text.h"
#include "sim/replay/replayer.h"
#include "sim/replay/shown.h"
#include "traces/replay/activity_class.h"

namespace polyphony::sim {
namespace {

// An unchanged replay with a larger relative error has missed something of the run.
constexpr double kReplayBar = 0.01;
// The interquartile range of a normal distribution, in standard deviations.
constexpr double kQuartiles = 1.349;

void require_classes(const Program& program, const std::vector<traces::Speedup>& faster) {
  const std::vector<std::string> labels = traces::class_labels(program);
  for (const traces::Speedup& speedup : faster) {
    const auto named = [&](const std::string& label) { return traces::is_of(label, speedup.what); };
    if (std::any_of(labels.begin(), labels.end(), named)) continue;
    std::string all;
    for (const std::string& label : labels) all += (all.empty() ? "" : ", ") + label;
    throw InputError(Argument{"faster"}, "", "no op has the class \"" + speedup.what + "\"",
                     "the classes are " + all);
  }
}

std::vector<PathStretch> stretches(const Program& program, const Timeline& timeline) {
  std::vector<PathStretch> path;
  for (const traces::PathPiece& piece : traces::critical_path(program, timeline)) {
    const Op& op = program.ops[piece.op.value];
    const std::string label = traces::class_label(program, op);
    const Rank rank = program.rank_of(op);
    if (!path.empty() && path.back().label == label && path.back().rank == rank) {
      path.back().end = piece.end;
      ++path.back().ops;
    } else {
      path.push_back({label, rank, piece.start, piece.end, 1});
    }
  }
  return path;
}

struct Played {
  std::vector<Seconds> steps;
  std::vector<Timeline> timelines;
  traces::Mixture mixture;
};

std::variant<Played, Infeasible> play_all(const Replayer& replayer,
                                          const std::vector<PlayedProgram>& programs,
                                          const traces::Machine& machine,
                                          const std::vector<traces::Speedup>& faster) {
  Played all;
  for (std::size_t s = 0; s < replayer.steps(); ++s) {
    auto outcome = replayer.play(s, programs[s], machine, faster);
    if (auto* no = std::get_if<Infeasible>(&outcome)) return std::move(*no);
    auto& played = std::get<Replayer::Played>(outcome);
    all.steps.push_back(played.timeline.makespan);
    all.timelines.push_back(std::move(played.timeline));
    for (const auto& [label, by] : played.mixture)
      for (std::size_t origin = 0; origin < by.size(); ++origin)
        all.mixture[label][origin] += by[origin];
  }
  return all;
}

ReplayedRun shown(const Played& played, const std::vector<PlayedProgram>& programs,
                  std::size_t step, const std::string& layout, traces::Machine machine) {
  ReplayedRun run;
  run.layout = layout;
  run.machine = std::move(machine);
  run.steps = traces::spread(played.steps);
  run.program = programs[step].program;
  run.timeline = played.timelines[step];
  run.parts = traces::part_times(run.program, run.timeline);
  run.idle = traces::mean(traces::idle_times(run.program, run.timeline));
  run.path = stretches(run.program, run.timeline);
  run.mixture = played.mixture;
  for (const PlayedProgram& program : programs)
    run.peak_memory = std::max(run.peak_memory, program.peak_memory);
  return run;
}

std::vector<PathDifference> differences(const ReplayedRun& before, const ReplayedRun& after) {
  std::map<std::string, PathDifference> by_label;
  for (const PathStretch& stretch : before.path)
    by_label[stretch.label].before += stretch.end - stretch.start;
  for (const PathStretch& stretch : after.path)
    by_label[stretch.label].after += stretch.end - stretch.start;
  return largest_first(std::move(by_label));
}

// Returns the relative deviation of the median of as many steps of another run from the median of
// these.
double jitter_of(const traces::Spread& steps) {
  if (steps.median.count() <= 0) return 0;
  const double single = (steps.p75 - steps.p25) / steps.median / kQuartiles;
  return single * std::sqrt(2 * std::numbers::pi / 2 /
                            static_cast<double>(std::max<std::size_t>(1, steps.count)));
}

// Returns the relative deviation due to what the model does not cover of the change.
double unmodeled(const traces::Measurement& measured, const ReplayChange& change,
                 const HardwareProfile& profile, const traces::Mixture& mixture) {
  const Certainty& certainty = profile.certainty;
  const double layout_error = certainty.layout_error.value_or(std::log1p(profile.step_error) /
                                                              central(0.9, certainty.freedom));
  const double tensor_error = certainty.tensor_error.value_or(layout_error);
  const auto by = traces::total(mixture);
  const Seconds all = by[0] + by[1] + by[2];
  const double unmeasured = all.count() > 0 ? 1 - by[0] / all : 0;
  LayoutDistance distance;
  if (change.scenario &&
      change.scenario->layout->modules.size() == measured.scenario.layout->modules.size())
    distance = layout_distance(*measured.scenario.layout, *change.scenario->layout);
  return std::max(layout_error * unmeasured,
                  std::sqrt(layout_error * layout_error * distance.other +
                            tensor_error * tensor_error * distance.tensor));
}

Belief belief_of(const Replayer& replayer, const std::vector<PlayedProgram>& programs,
                 std::size_t step, const ReplayChange& change, const ReplayedRun& after,
                 const HardwareProfile& profile) {
  const traces::Machine machine = replayer.changed_machine(change);
  const auto log_step = [&](const Moved& moved) {
    const Seconds at = replayer.step(step, programs[step], machine, change.faster, moved);
    return at.count() > 0 ? std::log(at.count()) : 0.0;
  };
  return {after.steps.median, effects_on(log_step, profile), 0, profile.certainty.freedom};
}

}  // namespace

void require_replayable(const traces::Measurement& measured) {
  if (measured.steps.size() >= kLeastReplayed) return;
  throw InputError(measured.source, "",
                   "a replay needs at least " + std::to_string(kLeastReplayed) +
                       " traced steps (got " + std::to_string(measured.steps.size()) + ")",
                   "record more: polyphony run --trace-steps 5:15");
}

std::variant<ReplayAnswer, Infeasible> replay(const traces::Measurement& measured,
                                              const HardwareProfile& profile,
                                              const ReplayChange& change) {
  require_replayable(measured);
  const Replayer replayer(measured, profile);
  ReplayAnswer answer;
  answer.source = measured.source;
  answer.profile = profile.name;
  answer.said = change.said;
  std::vector<Seconds> recorded;
  for (const Timeline& step : measured.steps) recorded.push_back(step.makespan);
  answer.measured = traces::spread(recorded);

  auto outcome = play_all(replayer, replayer.measured_programs(), replayer.machine(), {});
  if (auto* no = std::get_if<Infeasible>(&outcome)) return std::move(*no);
  const Played& alone = std::get<Played>(outcome);
  std::size_t step = middle_of(alone.steps);
  const auto answer_before = [&] {
    answer.before =
        shown(alone, replayer.measured_programs(), step, measured.layout(), replayer.machine());
    if (answer.measured.median.count() > 0)
      answer.replay_error = answer.before.steps.median / answer.measured.median - 1;
    if (std::abs(answer.replay_error) > kReplayBar)
      answer.notes.push_back("the unchanged replay differs from the measured step by " +
                             signed_percent_text(answer.replay_error) +
                             ": some time of this run is not in the time of any op");
  };
  if (!change.changes()) {
    answer_before();
    return answer;
  }
  auto lowered = replayer.changed_programs(change);
  if (auto* no = std::get_if<Infeasible>(&lowered)) return std::move(*no);
  const auto& programs = std::get<std::vector<PlayedProgram>>(lowered);
  require_classes(programs.front().program, change.faster);
  auto changed = play_all(replayer, programs, replayer.changed_machine(change), change.faster);
  if (auto* no = std::get_if<Infeasible>(&changed)) return std::move(*no);
  const Played& played = std::get<Played>(changed);
  step = middle_of(played.steps);
  answer_before();
  const Scenario& scenario = change.scenario ? *change.scenario : measured.scenario;
  answer.after = shown(played, programs, step, describe(scenario.model, *scenario.layout),
                       replayer.changed_machine(change));
  answer.differences = differences(answer.before, *answer.after);
  answer.belief = belief_of(replayer, programs, step, change, *answer.after, profile);
  answer.jitter = jitter_of(answer.after->steps);
  answer.belief.residual =
      std::hypot(unmodeled(measured, change, profile, answer.after->mixture), answer.jitter);
  return answer;
}

}  // namespace polyphony::sim
