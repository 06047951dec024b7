#include "tests/exec/parity/parity_judge.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "shared/check/check.h"
#include "shared/program/work.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/verify/verify.h"
#include "tests/exec/parity/parity_order.h"
#include "tests/exec/support/shards.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

constexpr double kLossBar = 1e-9;  // relative, of a held-out label in fp64

bool is_head(const Model& model, const Compute& what) {
  return what.module == language_module(model) &&
         what.layers.end == layers(model.modules[what.module.value]).size();
}

// The microbatches whose labels `rank` predicts, in order.
std::set<WorkId> predicted_works(const Program& program, Rank rank) {
  std::set<WorkId> works;
  const Range ops = program.ops_of(rank);
  for (std::uint32_t i = ops.begin; i < ops.end; ++i)
    if (const auto* what = std::get_if<Compute>(&program.ops[i].what))
      if (is_head(program.model, *what)) works.insert(what->work);
  return works;
}

// The labels of a microbatch's own tokens, in order.
void add_answers(const Program& program, const Work& work,
                 const std::vector<std::vector<Answer>>& answers, std::vector<Answer>& list) {
  std::int64_t at = 0;
  const auto holds = [&](std::int64_t row) {
    for (std::uint32_t i = work.rows.begin; i < work.rows.end; ++i)
      if (program.work_rows[i].begin <= row && row < program.work_rows[i].end) return true;
    return false;
  };
  for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
    const std::uint32_t sample = program.work_samples[i];
    std::size_t label = 0;
    for (const Item& item : program.batch.samples[sample].items) {
      at += language_rows(program.model, item);
      for (std::int64_t k = item.loss_tokens; k > 0; --k, ++label)
        if (holds(at - k)) list.push_back(answers[sample][label]);
    }
  }
}

Truth make_truth(const Case& c, const Scenario& scenario, const Dataset& dataset) {
  Reference reference(scenario,
                      c.precision == NumberFormat::fp64 ? torch::kFloat64 : torch::kFloat32);
  Truth truth;
  for (int step = 0; step < c.steps; ++step)
    truth.steps.push_back(reference.step(dataset.batch(static_cast<std::uint64_t>(step)), dataset,
                                         scenario.training.learning_rate,
                                         {scenario.data.seed, static_cast<std::uint64_t>(step)}));
  for (const Sample& sample : dataset.batch(0).samples)
    truth.answers.push_back(reference.predict(sample, dataset));
  return truth;
}
// The reference does not depend on the layout, so it is computed once per combination of everything
// else. Called only by the judging thread.
const Truth& truth_of(const Case& c, const Scenario& scenario, const Dataset& dataset) {
  static std::map<std::string, Truth> known;
  Program of_model;  // its hash covers all fields of the modules
  of_model.model = scenario.model;
  const std::string key = resolved_text(scenario) + std::to_string(hash(of_model)) +
                          std::to_string(c.steps) + (c.text_only ? " without images" : "") +
                          (c.oblong ? " oblong" : "") + " drawn " + std::to_string(c.drawn);
  const auto [entry, fresh] = known.try_emplace(key);
  if (fresh) entry->second = make_truth(c, scenario, dataset);
  return entry->second;
}

}  // namespace

std::vector<Parameter> whole_model(const Model& model) {
  std::vector<Parameter> all;
  for (const Module& module : model.modules)
    for (Parameter& parameter : parameters(module)) all.push_back(std::move(parameter));
  return all;
}

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

Outcome Judge::judge(const std::vector<Report>& reports, double apart, bool queued) {
  const Truth& truth = truth_of(case_, scenario_, *dataset_);
  compare_scalars(reports, truth.steps);
  compare_gradients(gather(reports, true), truth.steps.front());
  compare_values(gather(reports, false), truth.steps.back());
  compare_predictions(reports, truth.answers);
  compare_memory(reports);
  std::vector<Tensor> times;
  for (const Report& report : reports) times.push_back(report.times);
  if (const std::string disorder = find_disorder(last_, times, apart, queued); !disorder.empty())
    fault(disorder);
  return outcome_;
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
  const std::vector<Parameter> all = whole_model(scenario_.model);
  GatheredMap whole;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    std::vector<const ParamGroup*> groups;
    for (const ParamGroup& group : first_.params)
      if (group.rank == Rank(r)) groups.push_back(&group);
    const Tensor& pieces = reports[r].pieces;
    const Tensor& elements = moments ? reports[r].moments : reports[r].values;
    std::int64_t offset = 0;
    for (std::int64_t i = 0; i < pieces.size(0); ++i) {
      const double* piece = pieces[i].const_data_ptr<double>();
      const Parameter& spec = all[static_cast<std::size_t>(piece[0])];
      const Interval held{static_cast<std::int64_t>(piece[2]), static_cast<std::int64_t>(piece[3])};
      const Tensor part = elements.narrow(0, offset, held.size());
      offset += held.size();
      if (moments && held.size() > 0 && part.isnan().all().item<bool>()) continue;
      const auto [entry, fresh] = whole.try_emplace(spec.name);
      if (fresh) entry->second = torch::full(spec.shape, std::nan(""), torch::kFloat64);
      if (!put_local(entry->second, spec, groups[static_cast<std::size_t>(piece[1])]->shard, part,
                     held.begin))
        fault(spec.name + " differs between ranks that hold the same part");
    }
  }
  for (const auto& [name, tensor] : whole)
    if (tensor.isnan().any().item<bool>()) fault("part of " + name + " is held by no rank");
  return whole;
}

void Judge::compare_gradients(const GatheredMap& moments, const ReferenceStep& step) {
  if (moments.size() != step.gradients.size()) fault("the wrong parameters have gradients");
  const double floor = 1e-6 * step.gradient_norm;
  const double scale = (1 - scenario_.training.beta1) * step.clip;  // m₁ = (1 − β1) · clip · g
  double squares = 0;
  for (const auto& [name, wanted] : step.gradients) {
    const auto found = moments.find(name);
    if (found == moments.end()) return fault(name + " has no gradient");
    const double distance = (found->second / scale - wanted).norm().item<double>();
    squares += distance * distance;
    const double error = distance / std::max(wanted.norm().item<double>(), floor);
    if (error >= outcome_.gradient) {
      outcome_.gradient = error;
      outcome_.worst_gradient = name;
    }
  }
  outcome_.all_gradients = std::sqrt(squares) / step.gradient_norm;
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
void Judge::compare_memory(const std::vector<Report>& reports) {
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const double* row = reports[r].memory.const_data_ptr<double>();
    for (std::int64_t step = 0; step < reports[r].memory.numel() / 4; ++step, row += 4) {
      const double error = std::abs(row[0] / row[1] - 1);
      if (error < outcome_.memory) continue;
      outcome_.memory = error;
      std::ostringstream text;
      text << "of rank " << r << ": " << row[0] << " bytes, the Program's " << row[1]
           << "; before the step " << row[2] << ", " << row[3];
      outcome_.worst_memory = text.str();
    }
  }
}
void Judge::compare_predictions(const std::vector<Report>& reports,
                                const std::vector<std::vector<Answer>>& answers) {
  std::size_t wanted = 0, seen = 0;
  for (const std::vector<Answer>& list : answers) wanted += list.size();
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const Tensor& predicted = reports[r].predictions;  // pairs of id and loss
    std::vector<Answer> expected;
    for (const WorkId work : predicted_works(evaluation_, Rank(r)))
      add_answers(evaluation_, evaluation_.works[work.value], answers, expected);
    if (static_cast<std::int64_t>(2 * expected.size()) != predicted.numel())
      return fault("rank " + std::to_string(r) + " predicts " +
                   std::to_string(predicted.numel() / 2) + " of " +
                   std::to_string(expected.size()) + " labels");
    seen += expected.size();
    if (case_.precision != NumberFormat::fp64 || case_.fp8 != Fp8Scaling::off) continue;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double* pair = predicted.const_data_ptr<double>() + 2 * i;
      if (static_cast<std::int64_t>(pair[0]) != expected[i].id)
        return fault("a label is predicted wrongly on rank " + std::to_string(r));
      if (!(std::abs(pair[1] - expected[i].loss) <= kLossBar * std::abs(expected[i].loss)))
        return fault("a held-out loss is wrong on rank " + std::to_string(r));
    }
  }
  const ModuleId language = language_module(scenario_.model);
  if (seen != wanted * static_cast<std::size_t>(case_.layout.modules[language.value].tp))
    fault("not every label is predicted once");
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
  // In fp32 AdamW turns a gradient that is pure rounding into a full step: not
  // comparable.
  if (wide) compare("parameter", outcome.parameter, bar, outcome.worst_parameter);
  compare("peak memory", outcome.memory, 0.02, outcome.worst_memory);
  return text.str();
}

}  // namespace polyphony::exec::testing
