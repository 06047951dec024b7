#include "tests/exec/parity_judge.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "shared/plan/plan.h"
#include "shared/verify.h"
#include "tests/exec/parity_order.h"
#include "tests/exec/shards.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

bool is_head(const Model& model, const Compute& what) {
  return what.module == language_module(model) &&
         what.layers.end == layers(model.modules[what.module.value]).size();
}

// The labels that `rank` predicts, in the order of Report::predictions: works in order.
std::map<WorkId, std::int64_t> predicted_works(const Program& program, Rank rank) {
  std::map<WorkId, std::int64_t> works;
  const Range ops = program.rank_ops[rank.value];
  for (std::uint32_t i = ops.begin; i < ops.end; ++i)
    if (const auto* what = std::get_if<Compute>(&program.ops[i].what))
      if (is_head(program.model, *what))
        works[what->work] = program.size_of(what->work, what->module).loss_tokens;
  return works;
}

Truth make_truth(const Case& c, const Scenario& scenario, const Dataset& dataset) {
  Reference reference(scenario,
                      c.precision == NumberFormat::fp64 ? torch::kFloat64 : torch::kFloat32);
  Truth truth;
  for (int step = 0; step < c.steps; ++step)
    truth.steps.push_back(reference.step(dataset.batch(static_cast<std::uint64_t>(step)), dataset,
                                         scenario.training.learning_rate));
  for (const Sample& sample : dataset.batch(0).samples)
    truth.answers.push_back(reference.predict(sample, dataset));
  return truth;
}
// The same for all layouts, so made once for each of everything else. Only the judging thread calls
// this.
const Truth& truth_of(const Case& c, const Scenario& scenario, const Dataset& dataset) {
  static std::map<std::string, Truth> known;
  std::ostringstream key;
  key << name(c.precision) << c.steps << ' ' << c.clip_norm << c.text_only << c.language_only;
  for (const ModuleKind kind : c.frozen) key << name(kind);
  const auto [entry, fresh] = known.try_emplace(key.str());
  if (fresh) entry->second = make_truth(c, scenario, dataset);
  return entry->second;
}

}  // namespace

Judge::Judge(const Case& c, Program first, Program last, Program evaluation)
    : case_(c),
      scenario_(make_scenario(c)),
      dataset_(make_dataset(c, scenario_)),
      first_(std::move(first)),
      last_(std::move(last)),
      evaluation_(std::move(evaluation)) {}

std::string Judge::objection() const {
  if (const auto no = check_layout(scenario_, case_.layout)) return no->reason;
  if (const auto no = check_runnable(scenario_, case_.layout)) return no->reason;
  for (const Program* program : {&first_, &evaluation_})
    for (const Fault& fault : verify(*program))
      return std::string(name(fault.kind)) + ": " + fault.text;
  return {};
}

Report Judge::empty_report(Rank rank) const {
  std::int64_t values = 0, moments = 0, labels = 0;
  for (const ParamGroup& group : first_.params) {
    if (group.rank != rank) continue;
    for (const Parameter& parameter : specs(group)) {
      const std::int64_t count =
          parameter.local_count(shard_of(group));
      values += count;
      if (group.trainable) moments += count;
    }
  }
  for (const auto& [work, count] : predicted_works(evaluation_, rank)) labels += count;
  const auto zeros = [](std::int64_t size) { return torch::zeros({size}, torch::kFloat64); };
  return {zeros(3 * case_.steps), zeros(moments), zeros(values),
          zeros(2 * last_.rank_ops[rank.value].size()), zeros(labels)};
}

Outcome Judge::judge(const std::vector<Report>& reports) {
  const Truth& truth = truth_of(case_, scenario_, *dataset_);
  compare_scalars(reports, truth.steps);
  compare_gradients(gather(reports, true), truth.steps.front());
  compare_values(gather(reports, false), truth.steps.back());
  compare_predictions(reports, truth.answers);
  std::vector<Tensor> times;
  for (const Report& report : reports) times.push_back(report.times);
  if (const std::string disorder = find_disorder(last_, times); !disorder.empty()) fault(disorder);
  return outcome_;
}

std::vector<Parameter> Judge::specs(const ParamGroup& group) const {
  return polyphony::parameters(scenario_.model.modules[group.module.value], group.layers);
}
void Judge::fault(const std::string& text) {
  if (outcome_.fault.empty()) outcome_.fault = text;
}

void Judge::compare_scalars(const std::vector<Report>& reports,
                            const std::vector<ReferenceStep>& steps) {
  for (const Report& report : reports)
    if (!report.scalars.equal(reports.front().scalars)) fault("loss or norm differ between ranks");
  const double* got = reports.front().scalars.const_data_ptr<double>();
  for (const ReferenceStep& step : steps) {
    outcome_.loss = std::max(outcome_.loss, std::abs(got[0] - step.loss) / step.loss);
    outcome_.norm =
        std::max(outcome_.norm, std::abs(got[1] - step.gradient_norm) / step.gradient_norm);
    if (got[2] != 1.0) fault("an update was skipped");
    got += 3;
  }
}

GatheredMap Judge::gather(const std::vector<Report>& reports, bool moments) {
  GatheredMap all;
  std::vector<std::int64_t> used(reports.size(), 0);
  for (const ParamGroup& group : first_.params) {
    if (moments && !group.trainable) continue;
    const ShardIndex shard = shard_of(group);
    const Report& report = reports[group.rank.value];
    for (const Parameter& parameter : specs(group)) {
      const std::int64_t count = parameter.local_count(shard);
      std::int64_t& offset = used[group.rank.value];
      const auto [entry, fresh] = all.try_emplace(parameter.name);
      if (fresh) entry->second = torch::full(parameter.shape, std::nan(""), torch::kFloat64);
      if (!put_local(entry->second, parameter, shard,
                     (moments ? report.moments : report.values).narrow(0, offset, count)))
        fault(parameter.name + " differs between ranks that hold the same part");
      offset += count;
    }
  }
  return all;
}

ShardIndex Judge::shard_of(const ParamGroup& group) const {
  const ModuleLayout& layout = case_.layout.modules[group.module.value];
  return {.tensor = layout.tp,
          .tensor_index = (static_cast<int>(group.rank.value) - layout.first_rank) % layout.tp};
}

void Judge::compare_gradients(const GatheredMap& moments, const ReferenceStep& step) {
  if (moments.size() != step.gradients.size()) fault("the wrong parameters have gradients");
  const double floor = 1e-6 * step.gradient_norm;
  const double scale = (1 - scenario_.training.beta1) * step.clip;  // m₁ = (1 − β1) · clip · g
  for (const auto& [name, wanted] : step.gradients) {
    const auto found = moments.find(name);
    if (found == moments.end()) return fault(name + " has no gradient");
    const double error = (found->second / scale - wanted).norm().item<double>() /
                         std::max(wanted.norm().item<double>(), floor);
    if (error >= outcome_.gradient) {
      outcome_.gradient = error;
      outcome_.worst_gradient = name;
    }
  }
}
void Judge::compare_values(const GatheredMap& values, const ReferenceStep& step) {
  if (values.size() != step.parameters.size()) fault("some parameters are held by no rank");
  for (const auto& [name, wanted] : step.parameters) {
    const auto found = values.find(name);
    if (found == values.end()) return fault(name + " is held by no rank");
    const double error =
        (found->second - wanted).norm().item<double>() / wanted.norm().item<double>();
    if (error >= outcome_.parameter) {
      outcome_.parameter = error;
      outcome_.worst_parameter = name;
    }
  }
}
void Judge::compare_predictions(const std::vector<Report>& reports,
                                const std::vector<std::vector<std::int64_t>>& answers) {
  std::vector<int> seen(answers.size(), 0);
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const double* label = reports[r].predictions.const_data_ptr<double>();
    for (const auto& [work, count] : predicted_works(evaluation_, Rank(r))) {
      const Range samples = evaluation_.works[work.value].samples;
      for (std::uint32_t i = samples.begin; i < samples.end; ++i) {
        const std::uint32_t sample = evaluation_.work_samples[i];
        ++seen[sample];
        for (const std::int64_t answer : answers[sample])
          if (static_cast<std::int64_t>(*label++) != answer &&
              case_.precision == NumberFormat::fp64)
            fault("a label of sample " + std::to_string(sample) + " is predicted wrongly");
      }
    }
  }
  const int copies = case_.layout.modules.back().tp;
  if (std::any_of(seen.begin(), seen.end(), [&](int count) { return count != copies; }))
    fault("not every sample is predicted once");
}

std::string complaint(const Case& c, const Outcome& outcome) {
  const bool wide = c.precision == NumberFormat::fp64;
  const double bar = wide ? 1e-9 : 1e-5;
  const double loss_bar = !wide ? 1e-5 : c.steps == 1 ? 1e-12 : 1e-9;
  std::ostringstream text;
  if (!outcome.fault.empty()) text << outcome.fault << "; ";
  const auto compare = [&](const char* what, double error, double limit, const std::string& where) {
    if (!(error <= limit))
      text << what << " off by " << error << " > " << limit << " " << where << "; ";
  };
  compare("loss", outcome.loss, loss_bar, "");
  compare("gradient norm", outcome.norm, bar, "");
  compare("gradient", outcome.gradient, bar, outcome.worst_gradient);
  // In fp32 a step of AdamW turns a gradient that is rounding alone into a full step: not
  // comparable.
  if (wide) compare("parameter", outcome.parameter, bar, outcome.worst_parameter);
  return text.str();
}

}  // namespace polyphony::exec::testing
