#include "exec/worker/evaluation.h"

#include <map>
#include <utility>

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

struct Sums {
  double right = 0, asked = 0, loss = 0, labels = 0;
};
// Sums over the first `real` samples of a batch, as far as this rank predicted them. `positions`:
// positions of the Program's samples in the batch.
Sums sum_up(const Program& program, const std::vector<std::uint32_t>& positions,
            const std::map<WorkId, Predicted>& predictions,
            const std::map<WorkId, WorkInput>& inputs, std::size_t real) {
  Sums sums;
  for (const auto& [work, predicted] : predictions) {
    const torch::Tensor same =
        predicted.ids.eq(inputs.at(work).labels).to(torch::kInt64).cpu().contiguous();
    const torch::Tensor losses = predicted.losses.cpu().contiguous();
    const std::int64_t* hit = same.const_data_ptr<std::int64_t>();
    const double* loss = losses.const_data_ptr<double>();
    const Range samples = program.works[work.value].samples;
    for (std::uint32_t i = samples.begin; i < samples.end; ++i) {
      const std::uint32_t position = program.work_samples[i];
      std::int64_t labels = 0, hits = 0;
      double lost = 0;
      for (const Item& item : program.batch.samples[position].items) labels += item.loss_tokens;
      for (std::int64_t k = 0; k < labels; ++k) {
        hits += *hit++;
        lost += *loss++;
      }
      if (labels == 0 || positions[position] >= real) continue;
      sums.asked += 1;
      sums.right += hits == labels ? 1 : 0;
      sums.loss += lost;
      sums.labels += static_cast<double>(labels);
    }
  }
  return sums;
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
  torch::Tensor counts = torch::zeros({4}, torch::kFloat64);
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
    const Sums sums =
        sum_up(program, part.positions, predictions, inputs, questions.size() - begin);
    counts += torch::tensor({sums.right, sums.asked, sums.loss, sums.labels}, torch::kFloat64);
  }
  control.sum(counts);
  const double* sum = counts.const_data_ptr<double>();
  return {sum[0] / sum[1], static_cast<int>(sum[1]), sum[2] / sum[3]};
}

}  // namespace polyphony::exec
