#include "sim/replay/replayer.h"

#include <algorithm>

#include "shared/graph/memory.h"
#include "shared/scenario/typical_batch.h"
#include "sim/runner/simulate.h"

namespace polyphony::sim {
namespace {

Compiled compile_run(const Program& program) {
  auto compiled = compile(program);
  const auto* fault = std::get_if<Fault>(&compiled);
  POLYPHONY_CHECK(fault == nullptr, "a Program that ran cannot run: " << fault->text);
  return std::get<Compiled>(std::move(compiled));
}

Bytes largest(const std::vector<RankMemory>& memory) {
  Bytes most{};
  for (const RankMemory& rank : memory) most = std::max(most, rank.peak);
  return most;
}

// Returns whether the batches are the same: the same data, and items of the same size.
bool same_batches(const Scenario& a, const Scenario& b) {
  Data first = a.data, second = b.data;
  first.samples = {};  // the files are the same, whether read or not
  second.samples = {};
  if (first != second) return false;
  return !std::holds_alternative<SyntheticData>(first.source) ||
         typical_batch(a) == typical_batch(b);
}

traces::Machine moved_machine(const traces::Machine& machine, const Moved& moved) {
  traces::Machine result{machine.cluster, moved(machine.profile), machine.pace};
  return result;
}

}  // namespace

Replayer::Replayer(const traces::Measurement& measured, const HardwareProfile& profile)
    : measured_(measured), machine_{measured.scenario.cluster, profile, measured.pace} {
  for (std::size_t s = 0; s < measured.steps.size(); ++s) {
    const Program& program = measured.step_programs[s];
    programs_.push_back(
        {program, compile_run(program), largest(predict_memory(program, measured.steps[s]))});
    samples_.emplace_back(program, programs_.back().compiled, measured.steps[s], machine_);
  }
}

traces::Machine Replayer::changed_machine(const ReplayChange& change) const {
  traces::Machine machine{change.scenario ? change.scenario->cluster : machine_.cluster,
                          change.profile, machine_.pace};
  if (machine.pace) machine.pace->profile = change.profile;
  return machine;
}

std::variant<std::vector<PlayedProgram>, Infeasible> Replayer::changed_programs(
    const ReplayChange& change) const {
  std::vector<PlayedProgram> result;
  if (!change.scenario) return programs_;
  const Scenario& scenario = *change.scenario;
  const bool same = same_batches(scenario, measured_.scenario);
  for (std::size_t s = 0; s < steps(); ++s) {
    const Batch batch = same ? programs_[s].program.batch : batch_of_step(scenario, s);
    auto outcome = predict(scenario, *scenario.layout, batch, change.profile, Predictor::estimate,
                           changed_machine(change).pace);
    if (auto* no = std::get_if<Infeasible>(&outcome)) return std::move(*no);
    auto& prediction = std::get<Prediction>(outcome);
    result.push_back({std::move(prediction.program), std::move(prediction.compiled),
                      largest(prediction.memory)});
  }
  return result;
}

std::variant<Replayer::Played, Infeasible> Replayer::play(
    std::size_t s, const PlayedProgram& program, const traces::Machine& machine,
    const std::vector<traces::Speedup>& faster) const {
  traces::ReplayedCosts given =
      samples_[s].costs_of(program.program, program.compiled, machine, faster);
  Played played{{}, std::move(given.mixture)};
  if (given.costs.flows.empty()) {  // no link is shared, so the step is the longest path
    played.timeline = estimate(program.program, program.compiled, given.costs).timeline;
    return played;
  }
  auto timeline = simulate(program.program, program.compiled, given.costs);
  if (auto* no = std::get_if<Infeasible>(&timeline)) return std::move(*no);
  played.timeline = std::get<Timeline>(std::move(timeline));
  return played;
}

Seconds Replayer::step(std::size_t s, const PlayedProgram& program, const traces::Machine& machine,
                       const std::vector<traces::Speedup>& faster, const Moved& moved) const {
  const traces::MeasuredStep sample(programs_[s].program, programs_[s].compiled, measured_.steps[s],
                                    moved_machine(machine_, moved));
  const CostTable costs =
      sample.costs_of(program.program, program.compiled, moved_machine(machine, moved), faster)
          .costs;
  return estimate_step(program.compiled, costs).step();
}

}  // namespace polyphony::sim
