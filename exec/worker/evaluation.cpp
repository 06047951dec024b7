#include "exec/worker/evaluation.h"

#include <map>

#include "shared/error.h"

namespace polyphony::exec {
namespace {

// Returns the rank's tensor-parallel index in the language module's grid; only index 0 counts
// predictions.
bool counts_predictions(const Program& program, Rank rank) {
  const ModuleLayout& grid = program.layout.modules[language_module(program.model).value];
  return (static_cast<int>(rank.value) - grid.first_rank) % grid.tp == 0;
}

std::vector<Sample> spread_out(std::vector<Sample> samples, int wanted) {
  if (wanted <= 0 || static_cast<std::size_t>(wanted) >= samples.size()) return samples;
  std::vector<Sample> chosen;
  for (int i = 0; i < wanted; ++i)
    chosen.push_back(
        samples[samples.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(wanted)]);
  return chosen;
}

// Adds this rank's predictions of a batch to `sums`, [questions, 3] in fp64: labels of each
// question, those predicted right, and their losses. A context rank has a part of a sample's
// labels. `positions`: positions of the Program's samples in the batch, which begins at question
// `begin`.
void add_predictions(torch::Tensor& sums, const Program& program,
                     const std::vector<std::uint32_t>& positions,
                     const std::map<WorkId, Predicted>& predictions,
                     const std::map<WorkId, WorkInput>& inputs, std::size_t begin) {
  for (const auto& [work, predicted] : predictions) {
    const WorkInput& input = inputs.at(work);
    const Range samples = program.works[work.value].samples;
    std::vector<std::int64_t> questions;
    for (std::uint32_t i = samples.begin; i < samples.end; ++i)
      questions.push_back(static_cast<std::int64_t>(begin + positions[program.work_samples[i]]));
    const torch::Tensor of_row =
        torch::tensor(questions, torch::kInt64)
            .repeat_interleave(torch::tensor(input.lengths, torch::kInt64));
    const torch::Tensor hits = predicted.ids.eq(input.labels).to(torch::kFloat64).cpu();
    sums.index_add_(0, of_row.index_select(0, input.loss_rows),
                    torch::stack({torch::ones_like(hits), hits, predicted.losses.cpu()}, 1));
  }
}

// A question is answered right if all of its labels are. Adds in order, so that every rank gets the
// same result.
Answers answers_of(const torch::Tensor& sums) {
  const auto at = sums.accessor<double, 2>();
  double right = 0, asked = 0, loss = 0, labels = 0;
  for (std::int64_t i = 0; i < at.size(0); ++i) {
    if (at[i][0] == 0) continue;
    asked += 1;
    right += at[i][0] == at[i][1] ? 1 : 0;
    labels += at[i][0];
    loss += at[i][2];
  }
  return {right / asked, static_cast<int>(asked), loss / labels};
}

}  // namespace

Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset, int samples,
                 torch::Device device) {
  const std::vector<Sample> questions = spread_out(dataset.held_out(), samples);
  if (questions.empty())
    throw InputError(scenario.file, "/data/source", "has no held-out samples to evaluate on",
                     "use a data set with a test split, or omit evaluation");
  const auto size = static_cast<std::size_t>(scenario.data.global_batch);
  // Also with rows for the samples that fill the last batch.
  torch::Tensor sums =
      torch::zeros({static_cast<std::int64_t>(questions.size() + size), 3}, torch::kFloat64);
  for (std::size_t begin = 0; begin < questions.size(); begin += size) {
    Batch batch;
    for (std::size_t i = 0; i < size;
         ++i)  // the last batch is padded with samples that do not count
      batch.samples.push_back(questions[(begin + i) % questions.size()]);
    const StepPart part = planner.own_part(batch);
    const Program program = planner.lower_own(part, StepKind::evaluate);
    const std::map<WorkId, WorkInput> inputs =
        pack_inputs(program, transport.rank(), dataset, {scenario.data.seed, 0}, device);
    const auto predictions =
        runner.evaluate(program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); });
    if (!counts_predictions(program, transport.rank())) continue;
    add_predictions(sums, program, part.positions, predictions, inputs, begin);
  }
  sums = sums.narrow(0, 0, static_cast<std::int64_t>(questions.size()));
  control.sum(sums);
  return answers_of(sums);
}

}  // namespace polyphony::exec
