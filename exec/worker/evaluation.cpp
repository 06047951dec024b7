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

// What all ranks found out about each question: a context rank predicts a part of a sample's
// labels only. Three fp64 numbers per question, to be added over the ranks.
class Answered {
 public:
  explicit Answered(std::size_t questions)
      : sums_(torch::zeros({static_cast<std::int64_t>(3 * questions)}, torch::kFloat64)) {}

  // Adds a rank's predictions of a batch that begins at question `begin`; samples behind the last
  // question only fill the batch. `positions`: positions of the Program's samples in the batch.
  void add(const Program& program, const std::vector<std::uint32_t>& positions,
           const std::map<WorkId, Predicted>& predictions,
           const std::map<WorkId, WorkInput>& inputs, std::size_t begin) {
    double* sums = sums_.data_ptr<double>();
    for (const auto& [work, predicted] : predictions) {
      const WorkInput& input = inputs.at(work);
      const torch::Tensor same =
          predicted.ids.eq(input.labels).to(torch::kInt64).cpu().contiguous();
      const torch::Tensor losses = predicted.losses.cpu().contiguous();
      const torch::Tensor rows = input.loss_rows.contiguous();
      const std::int64_t* row = rows.const_data_ptr<std::int64_t>();
      const Range samples = program.works[work.value].samples;
      std::int64_t k = 0, end = 0;  // the label, and the end of the sample's rows on this rank
      for (std::uint32_t i = samples.begin; i < samples.end; ++i) {
        const std::size_t question = begin + positions[program.work_samples[i]];
        end += input.lengths.at(i - samples.begin);
        for (; k < rows.numel() && row[k] < end; ++k) {
          if (3 * question >= static_cast<std::size_t>(sums_.numel())) continue;
          sums[3 * question] += 1;
          sums[3 * question + 1] += static_cast<double>(same.const_data_ptr<std::int64_t>()[k]);
          sums[3 * question + 2] += losses.const_data_ptr<double>()[k];
        }
      }
    }
  }

  // A question is answered right if all of its labels are.
  Answers answers(Control& control) {
    control.sum(sums_);
    const double* sums = sums_.const_data_ptr<double>();
    double right = 0, asked = 0, loss = 0, labels = 0;
    for (std::int64_t i = 0; i < sums_.numel(); i += 3) {
      if (sums[i] == 0) continue;
      asked += 1;
      right += sums[i] == sums[i + 1] ? 1 : 0;
      labels += sums[i];
      loss += sums[i + 2];
    }
    return {right / asked, static_cast<int>(asked), loss / labels};
  }

 private:
  torch::Tensor sums_;  // [3 × questions]: labels, those that are predicted right, losses
};

}  // namespace

Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset, int samples,
                 torch::Device device) {
  const std::vector<Sample> questions = spread_out(dataset.held_out(), samples);
  if (questions.empty())
    throw InputError(scenario.file, "/data/source", "has no held-out samples to evaluate on",
                     "use a data set with a test split, or omit evaluation");
  const auto size = static_cast<std::size_t>(scenario.data.global_batch);
  Answered answered(questions.size());
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
    answered.add(program, part.positions, predictions, inputs, begin);
  }
  return answered.answers(control);
}

}  // namespace polyphony::exec
