#include "tests/exec/parity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <sstream>

#include "exec/in_process.h"
#include "exec/runner.h"
#include "exec/step_data.h"
#include "shared/error.h"
#include "shared/parameters.h"
#include "shared/plan/lower.h"
#include "shared/verify.h"
#include "tests/exec/parity_order.h"
#include "tests/exec/reference.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

// What a rank reports to rank 0, everything as fp64.
struct Report {
  Tensor scalars;      // [steps, 3]: loss, norm, finite
  Tensor moments;      // after step 1: AdamW's first moments of the trained chunks, one after another
  Tensor values;       // after the last step: all chunks
  Tensor times;        // [ops of the rank, 2] of the last step
  Tensor predictions;  // of the works whose head the rank runs, by work
  std::vector<Tensor*> parts() { return {&scalars, &moments, &values, &times, &predictions}; }
};

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts = {torch::empty({0}, torch::kFloat64)};
  for (const Tensor& tensor : tensors) parts.push_back(tensor.reshape({-1}).to(torch::kFloat64));
  return torch::cat(parts);
}

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
      if (is_head(program.model, *what)) works[what->work] = program.size_of(what->work, what->module).loss_tokens;
  return works;
}

// One rank's training run of a case.
class Trainee {
 public:
  Trainee(Transport& transport, const Case& c)
      : transport_(transport),
        case_(c),
        scenario_(make_scenario(c)),
        dataset_(make_dataset(c, scenario_)),
        plan_(make_plan(scenario_, c.layout)) {}

  Program program(int step, Pass pass = Pass::train) const {
    return lower(scenario_, case_.layout, plan_, dataset_->batch(static_cast<std::uint64_t>(step)), pass);
  }

  Report run() {
    Report report;
    Runner runner(transport_, scenario_, program(0), {true, true});
    std::vector<Tensor> scalars;
    for (int step = 0; step < case_.steps; ++step) {
      const Program ops = program(step);
      const std::map<WorkId, WorkInput> inputs = pack_inputs(ops, transport_.rank(), *dataset_);
      const StepScalars got = runner.train_step(
          ops, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, scenario_.training.learning_rate);
      scalars.push_back(torch::tensor({got.loss, got.gradient_norm, got.finite ? 1.0 : 0.0}, torch::kFloat64));
      if (step == 0) report.moments = moments_of(runner);
    }
    report.scalars = flat(scalars);
    report.values = values_of(runner);
    report.times = times_of(runner);
    report.predictions = predict(runner);
    return report;
  }

 private:
  static Tensor moments_of(Runner& runner) {
    std::vector<Tensor> moments;
    for (const AdamWState& state : runner.optimizer().state()) moments.push_back(state.first_moment);
    return flat(moments).clone();
  }
  static Tensor values_of(Runner& runner) {
    std::vector<Tensor> values;
    for (Chunk* chunk : runner.chunks())
      for (const LocalParameter& parameter : chunk->parameters()) values.push_back(parameter.value);
    return flat(values);
  }
  static Tensor times_of(const Runner& runner) {
    std::vector<double> times;
    for (const OpTime& time : runner.times()) times.insert(times.end(), {time.start.count(), time.end.count()});
    return torch::tensor(times, torch::kFloat64);
  }
  Tensor predict(Runner& runner) const {
    const Program ops = program(0, Pass::evaluate);
    const std::map<WorkId, WorkInput> inputs = pack_inputs(ops, transport_.rank(), *dataset_);
    const auto labels = runner.evaluate(ops, [&](WorkId work) -> const WorkInput& { return inputs.at(work); });
    std::vector<Tensor> all;
    for (const auto& [work, tensor] : labels) all.push_back(tensor);
    return flat(all);
  }

  Transport& transport_;
  const Case& case_;
  Scenario scenario_;
  std::unique_ptr<Dataset> dataset_;
  Plan plan_;
};

// A parameter from its shards: by tensor-parallel index, the copies of the replicas.
struct Gathered {
  Parameter spec;
  std::vector<std::vector<Tensor>> copies;
};
using GatheredMap = std::map<std::string, Gathered>;

// Rank 0's side: what the reference says, and how far off the reports are.
class Judge {
 public:
  Judge(const Case& c, const Trainee& trainee)
      : case_(c),
        scenario_(make_scenario(c)),
        dataset_(make_dataset(c, scenario_)),
        first_(trainee.program(0)),
        last_(trainee.program(c.steps - 1)),
        evaluation_(trainee.program(0, Pass::evaluate)) {}

  // Why the case cannot even start; empty: nothing.
  std::string objection() const {
    if (const auto no = check_layout(scenario_, case_.layout)) return no->reason;
    if (const auto no = check_runnable(scenario_, case_.layout)) return no->reason;
    for (const Program* program : {&first_, &evaluation_})
      for (const Fault& fault : verify(*program)) return std::string(name(fault.kind)) + ": " + fault.text;
    return {};
  }

  // Tensors of the right sizes to receive a rank's report in.
  Report empty_report(Rank rank) const {
    std::int64_t values = 0, moments = 0, labels = 0;
    for (const ParamGroup& group : first_.params) {
      if (group.rank != rank) continue;
      for (const Parameter& parameter : specs(group)) {
        const std::int64_t count = torch::empty(parameter.local_shape(tp(group))).numel();
        values += count;
        if (group.trainable) moments += count;
      }
    }
    for (const auto& [work, count] : predicted_works(evaluation_, rank)) labels += count;
    const auto zeros = [](std::int64_t size) { return torch::zeros({size}, torch::kFloat64); };
    return {zeros(3 * case_.steps), zeros(moments), zeros(values), zeros(2 * last_.rank_ops[rank.value].size()),
            zeros(labels)};
  }

  Outcome judge(const std::vector<Report>& reports) {
    const torch::Dtype start = case_.precision == NumberFormat::fp64 ? torch::kFloat64 : torch::kFloat32;
    Reference reference(scenario_, start);
    std::vector<ReferenceStep> steps;
    for (int step = 0; step < case_.steps; ++step)
      steps.push_back(reference.step(dataset_->batch(static_cast<std::uint64_t>(step)), *dataset_,
                                     scenario_.training.learning_rate));
    compare_scalars(reports, steps);
    compare_gradients(gather(reports, true), steps.front());
    compare_values(gather(reports, false), steps.back());
    compare_predictions(reports, reference);
    std::vector<Tensor> times;
    for (const Report& report : reports) times.push_back(report.times);
    if (const std::string disorder = find_disorder(last_, times); !disorder.empty()) fault(disorder);
    return outcome_;
  }

 private:
  std::vector<Parameter> specs(const ParamGroup& group) const {
    return polyphony::parameters(scenario_.model.modules[group.module.value], group.layers);
  }
  int tp(const ParamGroup& group) const { return case_.layout.modules[group.module.value].tp; }
  void fault(const std::string& text) {
    if (outcome_.fault.empty()) outcome_.fault = text;
  }

  void compare_scalars(const std::vector<Report>& reports, const std::vector<ReferenceStep>& steps) {
    for (const Report& report : reports)
      if (!report.scalars.equal(reports.front().scalars)) fault("loss or norm differ between ranks");
    const double* got = reports.front().scalars.const_data_ptr<double>();
    for (const ReferenceStep& step : steps) {
      outcome_.loss = std::max(outcome_.loss, std::abs(got[0] - step.loss) / step.loss);
      outcome_.norm = std::max(outcome_.norm, std::abs(got[1] - step.gradient_norm) / step.gradient_norm);
      if (got[2] != 1.0) fault("an update was skipped");
      got += 3;
    }
  }

  GatheredMap gather(const std::vector<Report>& reports, bool moments) {
    GatheredMap all;
    std::vector<std::int64_t> used(reports.size(), 0);
    for (const ParamGroup& group : first_.params) {
      if (moments && !group.trainable) continue;
      const ModuleLayout& layout = case_.layout.modules[group.module.value];
      const int index = (static_cast<int>(group.rank.value) - layout.first_rank) % layout.tp;
      const Report& report = reports[group.rank.value];
      for (const Parameter& parameter : specs(group)) {
        const std::vector<std::int64_t> shape = parameter.local_shape(layout.tp);
        const std::int64_t count = torch::empty(shape).numel();
        std::int64_t& offset = used[group.rank.value];
        Gathered& entry = all[parameter.name];
        entry.spec = parameter;
        entry.copies.resize(static_cast<std::size_t>(layout.tp));
        entry.copies[static_cast<std::size_t>(index)].push_back(
            (moments ? report.moments : report.values).narrow(0, offset, count).view(shape));
        offset += count;
      }
    }
    for (const auto& [name, entry] : all) check_copies(name, entry);
    return all;
  }
  void check_copies(const std::string& name, const Gathered& entry) {
    const bool whole = entry.spec.cut == Cut::replicated;
    for (const std::vector<Tensor>& copies : entry.copies) {
      if (copies.size() != entry.copies.front().size() || copies.empty()) fault(name + " is not held by all replicas");
      for (const Tensor& copy : copies)
        if (!copy.equal(whole ? entry.copies.front().front() : copies.front()))
          fault(name + " differs between ranks that hold the same part");
    }
  }
  static Tensor assemble(const Gathered& entry) {
    if (entry.spec.cut == Cut::replicated) return entry.copies.front().front();
    std::vector<Tensor> shards;
    for (const std::vector<Tensor>& copies : entry.copies) shards.push_back(copies.front());
    return torch::cat(shards, entry.spec.cut == Cut::rows ? 0 : 1);
  }

  void compare_gradients(const GatheredMap& moments, const ReferenceStep& step) {
    if (moments.size() != step.gradients.size()) fault("the wrong parameters have gradients");
    const double floor = 1e-6 * step.gradient_norm;
    const double scale = (1 - scenario_.training.beta1) * step.clip;  // m₁ = (1 − β1) · clip · g
    for (const auto& [name, wanted] : step.gradients) {
      const auto found = moments.find(name);
      if (found == moments.end()) return fault(name + " has no gradient");
      const double error = (assemble(found->second) / scale - wanted).norm().item<double>() /
                           std::max(wanted.norm().item<double>(), floor);
      if (error >= outcome_.gradient) {
        outcome_.gradient = error;
        outcome_.worst_gradient = name;
      }
    }
  }
  void compare_values(const GatheredMap& values, const ReferenceStep& step) {
    if (values.size() != step.parameters.size()) fault("some parameters are held by no rank");
    for (const auto& [name, wanted] : step.parameters) {
      const auto found = values.find(name);
      if (found == values.end()) return fault(name + " is held by no rank");
      const double error = (assemble(found->second) - wanted).norm().item<double>() / wanted.norm().item<double>();
      if (error >= outcome_.parameter) {
        outcome_.parameter = error;
        outcome_.worst_parameter = name;
      }
    }
  }
  void compare_predictions(const std::vector<Report>& reports, const Reference& reference) {
    std::map<std::uint32_t, std::vector<std::int64_t>> answers;  // by position in the batch
    for (std::uint32_t s = 0; s < evaluation_.batch.samples.size(); ++s)
      answers[s] = reference.predict(evaluation_.batch.samples[s], *dataset_);
    std::vector<int> seen(answers.size(), 0);
    for (std::size_t r = 0; r < reports.size(); ++r) {
      const double* label = reports[r].predictions.const_data_ptr<double>();
      for (const auto& [work, count] : predicted_works(evaluation_, Rank(r))) {
        const Range samples = evaluation_.works[work.value].samples;
        for (std::uint32_t i = samples.begin; i < samples.end; ++i) {
          const std::uint32_t sample = evaluation_.work_samples[i];
          ++seen[sample];
          for (const std::int64_t answer : answers[sample])
            if (static_cast<std::int64_t>(*label++) != answer && case_.precision == NumberFormat::fp64)
              fault("a label of sample " + std::to_string(sample) + " is predicted wrongly");
        }
      }
    }
    const int copies = case_.layout.modules.back().tp;
    if (std::any_of(seen.begin(), seen.end(), [&](int count) { return count != copies; }))
      fault("not every sample is predicted once");
  }

  const Case& case_;
  Scenario scenario_;
  std::unique_ptr<Dataset> dataset_;
  Program first_, last_, evaluation_;
  Outcome outcome_;
};

}  // namespace

Outcome run_case(Transport& transport, const Case& c) {
  Trainee trainee(transport, c);
  const bool judges = transport.rank() == Rank(0);
  std::unique_ptr<Judge> judge;
  if (judges) {
    judge = std::make_unique<Judge>(c, trainee);
    if (const std::string no = judge->objection(); !no.empty()) throw std::runtime_error(c.name + ": " + no);
  }
  std::vector<Report> reports = {trainee.run()};
  const auto transfers = [](Report& report, Rank peer, std::uint64_t rank, bool sends) {
    std::vector<Transfer> list;
    std::uint64_t tag = kTagEnd - 8 * (rank + 1);
    for (Tensor* part : report.parts()) list.push_back({*part, peer, tag++, sends});
    return list;
  };
  if (!judges) {
    transport.exchange(transfers(reports[0], Rank(0), transport.rank().value, true));
    return {};
  }
  for (std::uint32_t r = 1; r < static_cast<std::uint32_t>(transport.world_size()); ++r) {
    reports.push_back(judge->empty_report(Rank(r)));
    transport.exchange(transfers(reports.back(), Rank(r), r, false));
  }
  return judge->judge(reports);
}

Outcome run_in_process(const Case& c) {
  Outcome outcome;
  exec::run_in_process(
      world_size(c.layout),
      [&](Transport& transport) {
        const Outcome mine = run_case(transport, c);
        if (transport.rank() == Rank(0)) outcome = mine;
      },
      Seconds(60));
  return outcome;
}

std::string complaint(const Case& c, const Outcome& outcome) {
  const bool wide = c.precision == NumberFormat::fp64;
  const double bar = wide ? 1e-9 : 1e-5;
  const double loss_bar = !wide ? 1e-5 : c.steps == 1 ? 1e-12 : 1e-9;
  std::ostringstream text;
  if (!outcome.fault.empty()) text << outcome.fault << "; ";
  const auto compare = [&](const char* what, double error, double limit, const std::string& where) {
    if (!(error <= limit)) text << what << " off by " << error << " > " << limit << " " << where << "; ";
  };
  compare("loss", outcome.loss, loss_bar, "");
  compare("gradient norm", outcome.norm, bar, "");
  compare("gradient", outcome.gradient, bar, outcome.worst_gradient);
  // In fp32 a step of AdamW turns a gradient that is rounding alone into a full step: not comparable.
  if (wide) compare("parameter", outcome.parameter, bar, outcome.worst_parameter);
  return text.str();
}

}  // namespace polyphony::exec::testing
