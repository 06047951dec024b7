#include "sim/step_answers/step.h"

#include <algorithm>
#include <map>

#include "shared/cost/layer_costs.h"
#include "shared/cost/model_flops.h"
#include "shared/program/stage_name.h"
#include "shared/program/work.h"
#include "shared/text/figure_text.h"
#include "sim/prediction/effects.h"
#include "sim/prediction/fitting.h"
#include "sim/prediction/need.h"
#include "sim/prediction/shared_cores_note.h"

namespace polyphony::sim {
namespace {

// Frameworks count the FLOPs of the language module as if all sequences had the length of the
// longest one in the batch.
void find_framework_mfu(StepAnswer& answer) {
  const Program& program = answer.prediction.program;
  const double available = answer.prediction.peak.value * program.ranks *
                           answer.prediction.step().count() / answer.prediction.lanes;
  if (available <= 0 || answer.figures.model_flops_utilization <= 0) return;
  const Module& language = program.model.modules[language_module(program.model).value];
  std::int64_t longest = 0;
  for (const Sample& sample : program.batch.samples)
    longest = std::max(longest, language_rows(program.model, sample));
  const auto sequences = static_cast<double>(program.batch.samples.size());
  const auto length = static_cast<double>(longest);
  answer.megatron_mfu = megatron_flops(language, sequences, length).value / available;
  const FlopsPerSecond peak = answer.prediction.peak;
  answer.megatron_full = peak * answer.megatron_mfu;
  answer.megatron_half =
      peak *
      (megatron_flops(language, sequences, length, CountedAttention::half).value / available);
  answer.torchtitan_mfu = torchtitan_flops(language, sequences, length).value / available;
}

// Adds a note if the MFU exceeds 1. Only the corrections of a profile can cause that, because its
// efficiencies are at most 1.
void note_beyond_peak(StepAnswer& answer) {
  const double mfu = answer.figures.model_flops_utilization;
  if (mfu <= 1) return;
  answer.notes.push_back("the model FLOPs are " + percent_text(mfu) + " of the peak of " +
                         answer.profile.device.name + ": profile " + answer.profile.name +
                         " understates the peak, or its corrections are too optimistic");
}

std::optional<Infeasible> find_jitter(const StepOptions& options, StepAnswer& answer) {
  const int steps = options.jitter_steps;
  if (steps < 0)
    throw InputError(Argument{"jitter"}, "",
                     "must not be negative (got " + std::to_string(steps) + ")",
                     "give a number of steps, such as 1000");
  if (steps == 0) return {};
  const auto& jitter = answer.profile.certainty.jitter;
  if (!jitter)
    throw InputError(Argument{"jitter"}, "/certainty/jitter",
                     "profile " + answer.profile.name + " has no model of jitter",
                     "`polyphony calibrate` measures it from a traced run of four steps or more");
  auto outcome = jittered_steps(
      answer.prediction, *jitter, steps,
      answer.prediction.simulated ? Predictor::simulate : Predictor::estimate, options.jobs,
      options.progress ? options.progress : [](double) {});
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
  answer.jittered = std::get<JitteredSteps>(std::move(outcome));
  return {};
}

// Returns the most replicas of any module: at least one of these remains when a layout is folded.
int most_lanes(const Layout& layout) {
  int most = 1;
  for (const ModuleLayout& grid : layout.modules) most = std::max(most, grid.dp());
  return most;
}

traces::PartTimes mean_of_workers(const Program& program,
                                  const std::vector<traces::PartTimes>& parts) {
  std::vector<traces::PartTimes> workers;
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    if (program.rank_ops[rank].size() > 0) workers.push_back(parts[rank]);
  return traces::mean(workers);
}

}  // namespace

std::variant<Prediction, Infeasible> predict_step(const PlannedLayout& planned, const Batch& batch,
                                                  const StepOptions& options,
                                                  std::vector<std::string>& notes) {
  const Layout& layout = planned.layout;
  const bool large =
      options.fold_large &&
      need_of(planned.scenario(), planned.plan, layout, {options.predictor}).ops > kMostWhole;
  if (large && !layout.actions.empty()) {
    notes.emplace_back("not folded: the layout has a list of actions");
  } else if (large) {
    const NeedOptions least{.predictor = Predictor::estimate, .lanes = most_lanes(layout)};
    if (const auto no = check_need(planned, least, options.memory)) return *no;
    auto folded = predict_folded(planned);
    if (const auto* found = std::get_if<Prediction>(&folded)) {
      const Program& program = found->program;
      const auto working = std::count_if(program.rank_ops.begin(), program.rank_ops.end(),
                                         [](const Range& ops) { return ops.size() > 0; });
      notes.push_back("folded: " + count_text(working) + " ranks represent all " +
                      count_text(program.ranks) + ", an estimate; --whole predicts every rank");
      return folded;
    }
    notes.push_back("not folded: " + std::get<Infeasible>(folded).reason);
  }
  if (const auto no = check_need(planned, {.predictor = options.predictor, .trace = options.trace},
                                 options.memory))
    return *no;
  return predict(planned, batch, options.predictor);
}

std::variant<Prediction, Infeasible> predict_step(const Scenario& scenario, const Layout& layout,
                                                  const Batch& batch,
                                                  const HardwareProfile& profile,
                                                  const StepOptions& options,
                                                  std::vector<std::string>& notes) {
  return predict_step(plan_layout(borrow_inputs(scenario, profile), layout), batch, options, notes);
}

std::variant<StepAnswer, Infeasible> answer_step(const Scenario& scenario, const Layout& layout,
                                                 const Batch& batch, const HardwareProfile& profile,
                                                 const StepOptions& options) {
  StepAnswer answer;
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
  auto outcome = predict_step(planned, batch, options, answer.notes);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
  answer.layout = describe(scenario.model, layout);
  answer.profile = profile;
  answer.prediction = std::get<Prediction>(std::move(outcome));
  const Prediction& prediction = answer.prediction;
  answer.figures = figures(scenario, prediction);
  answer.belief = make_belief(prediction.step(), step_effects(planned, prediction), profile,
                              scenario, planned.layout);
  answer.extrapolated = find_extrapolations(prediction.program, profile);
  find_framework_mfu(answer);
  note_beyond_peak(answer);
  if (const auto no = find_jitter(options, answer)) return *no;
  answer.parts = traces::part_times(prediction.program, prediction.timeline);
  answer.mean_parts = mean_of_workers(prediction.program, answer.parts);
  answer.busiest = traces::critical_rank(answer.parts);
  answer.recomputes =
      std::any_of(layout.modules.begin(), layout.modules.end(),
                  [](const ModuleLayout& grid) { return grid.recompute != Recompute::none; });
  if (!answer.figures.fits())
    answer.out_of_memory = out_of_memory_text(scenario, layout, prediction, profile);
  answer.other_software = other_software(scenario.training.software, profile);
  if (!answer.other_software.empty())
    answer.notes.push_back("the scenario uses another software stack than profile " + profile.name +
                           ", which is for " + answer.other_software);
  if (auto note = shared_cores_note(scenario, options.cores)) answer.notes.push_back(*note);
  return answer;
}

std::vector<std::pair<std::string, Rank>> worst_by_stage(const Prediction& prediction) {
  std::vector<std::pair<std::string, Rank>> worst;
  std::map<std::string, std::size_t> places;
  const std::vector<std::string> names = stage_names(prediction.program);
  for (std::uint32_t r = 0; r < prediction.program.ranks; ++r) {
    if (prediction.program.rank_ops[r].size() == 0) continue;  // represented by another rank
    const std::string& stage = names[r];
    const auto [place, fresh] = places.try_emplace(stage, worst.size());
    if (fresh) worst.emplace_back(stage, Rank(r));
    Rank& held = worst[place->second].second;
    if (prediction.memory[r].peak > prediction.memory[held.value].peak) held = Rank(r);
  }
  return worst;
}

}  // namespace polyphony::sim
