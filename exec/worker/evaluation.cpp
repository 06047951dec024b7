#include "exec/worker/evaluation.h"

#include <algorithm>
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

// Returns the numbers of `wanted` of `all` samples, evenly spread; of all of them if it is 0.
std::vector<std::size_t> spread_out(std::size_t all, int wanted) {
  const std::size_t count = wanted <= 0 ? all : std::min(all, static_cast<std::size_t>(wanted));
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all * i / count);
  return chosen;
}

// Returns the position in its sample of each of this rank's rows, [T] int64.
torch::Tensor positions_in_samples(const WorkInput& input, std::uint32_t context) {
  std::int64_t first = 0;
  for (std::uint32_t c = 0; c < context && c < input.context_rows.size(); ++c)
    first += input.context_rows[c];
  if (!input.context_rows.empty())
    return input.context_positions.narrow(0, first, input.context_rows[context]);
  std::vector<torch::Tensor> of_samples;
  for (const std::int64_t length : input.lengths) of_samples.push_back(torch::arange(length));
  return torch::cat(of_samples);
}

// The predictions of a rank.
struct Predictions {
  // [questions, 3] fp64: labels of each question, those predicted right, and their losses.
  torch::Tensor sums;
  // If they are kept, each [labels, 4] int64: question, position, label, and predicted token.
  std::vector<torch::Tensor> labels = {};
  bool keep = false;
};

// Adds this rank's predictions of a batch. A context rank has a part of a sample's labels.
// `positions`: positions of the Program's samples in the batch, which begins at question `begin`.
void add_predictions(Predictions& all, const Program& program,
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
    const torch::Tensor of_label = of_row.index_select(0, input.loss_rows);
    all.sums.index_add_(0, of_label,
                        torch::stack({torch::ones_like(hits), hits, predicted.losses.cpu()}, 1));
    if (!all.keep) continue;
    const torch::Tensor at = positions_in_samples(input, program.works[work.value].context)
                                 .index_select(0, input.loss_rows);
    all.labels.push_back(torch::stack({of_label, at, input.labels.cpu(), predicted.ids.cpu()}, 1));
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

// Returns the predictions of all ranks by question, in the order of `questions`, which are numbers
// of held-out samples. Collective.
std::vector<SampleAnswer> gathered(Control& control, const std::vector<torch::Tensor>& labels,
                                   const std::vector<std::size_t>& questions) {
  torch::Tensor mine = torch::zeros({0, 4}, torch::kInt64);
  if (!labels.empty()) mine = torch::cat(labels);
  torch::Tensor all = control.gather(mine.flatten()).view({-1, 4});
  // Questions that fill the last batch do not count.
  all = all.index_select(
      0, all.select(1, 0).lt(static_cast<std::int64_t>(questions.size())).nonzero().flatten());
  for (const int column : {1, 0})  // by question, then by position
    all = all.index_select(0, all.select(1, column).argsort(/*stable=*/true));
  std::vector<SampleAnswer> answers;
  for (const std::size_t question : questions) answers.push_back({question, {}, {}});
  const auto at = all.accessor<std::int64_t, 2>();
  for (std::int64_t i = 0; i < at.size(0); ++i) {
    SampleAnswer& answer = answers[static_cast<std::size_t>(at[i][0])];
    answer.labels.push_back(at[i][2]);
    answer.predicted.push_back(at[i][3]);
  }
  std::erase_if(answers, [](const SampleAnswer& answer) { return answer.labels.empty(); });
  return answers;
}

}  // namespace

Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset,
                 const EvaluationOptions& options) {
  const std::vector<Sample> held_out = dataset.held_out();
  const std::vector<std::size_t> questions = spread_out(held_out.size(), options.samples);
  if (questions.empty())
    throw InputError(scenario.file, "/data/source", "has no held-out samples to evaluate on",
                     "use a data set with a test split, or omit evaluation");
  const auto size = static_cast<std::size_t>(scenario.data.global_batch);
  // Also with rows for the samples that fill the last batch.
  Predictions all{
      torch::zeros({static_cast<std::int64_t>(questions.size() + size), 3}, torch::kFloat64)};
  all.keep = options.keep;
  for (std::size_t begin = 0; begin < questions.size(); begin += size) {
    Batch batch;
    for (std::size_t i = 0; i < size;
         ++i)  // the last batch is padded with samples that do not count
      batch.samples.push_back(held_out[questions[(begin + i) % questions.size()]]);
    const StepPart part = planner.own_part(batch);
    const Program program = planner.lower_own(part, StepKind::evaluate);
    const std::map<WorkId, WorkInput> inputs =
        pack_inputs(program, transport.rank(), dataset, {scenario.data.seed, 0}, options.device);
    const auto predictions =
        runner.evaluate(program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); });
    if (!counts_predictions(program, transport.rank())) continue;
    add_predictions(all, program, part.positions, predictions, inputs, begin);
  }
  torch::Tensor sums = all.sums.narrow(0, 0, static_cast<std::int64_t>(questions.size()));
  control.sum(sums);
  Answers answers = answers_of(sums);
  if (options.keep) answers.samples = gathered(control, all.labels, questions);
  return answers;
}

}  // namespace polyphony::exec
