#include "traces/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "shared/chance/extrapolation.h"
#include "shared/chance/jitter.h"
#include "shared/cost/cost_model.h"
#include "shared/error.h"
#include "shared/graph/compile.h"
#include "shared/hardware/hardware_json.h"
#include "traces/calibrate/certainty.h"
#include "traces/calibrate/features.h"
#include "traces/calibrate/fit.h"
#include "traces/calibrate/jitter.h"
#include "traces/calibrate/machine_profile.h"
#include "traces/compare/activity.h"
#include "traces/compare/spread.h"

namespace polyphony::traces {
namespace {

// A prior may be wrong by an order of magnitude: its standard deviation is this many times its
// value, or at least this many times the smallest time below.
constexpr double kPriorDeviation = 10;
// For compute, one run does not separate the parameters: every op of a chunk contains the same
// mixture of layers. Corrections therefore start from a roofline that may be wrong by a factor of
// three, and fixed costs from the microbenchmarks, which may be wrong by the same factor. With 10
// for both, fixed costs absorbed errors of the corrections: in ten layouts of
// scenarios/easy_vqa.json, fitted to one of them, the errors were -18 to +27 %; with these values
// they are -11 to -1 % (scripts/bench_prediction, round 1).
constexpr double kComputeDeviation = 2.0;
constexpr double kFixedCostDeviation = 1;
// Order of magnitude of a kernel launch or a wake-up on a CPU. Assumed.
constexpr Seconds kSmallOverhead{20e-6};
constexpr Seconds kSmallDispatch{5e-6};  // CUDA launch, order of magnitude
constexpr Seconds kClockNoise{5e-6};     // between two stamps of a recorder
constexpr double kLeastRatio = 0.02;     // a model is wrong by at most a factor of 50
// A link or memory is at most as fast as a profile may state.
constexpr double kLeastSlowness = 1 / kMostOfAssumedLink;
constexpr double kLeastStepError = 0.02;  // smallest step error that a profile states; assumed
constexpr double kInformed = 0.5;
constexpr double kQuartileToSigma = 1.4826;  // of a normal distribution
constexpr double kMedianToMean = 1.2533;     // √(π/2): deviation of a median over that of a mean

enum class RowKind { compute, message, collective, update };

using Rows = std::map<RowKind, std::vector<FitRow>>;

Compiled compile_or_fail(const Program& program, const std::string& label) {
  auto compiled = compile(program);
  if (const auto* fault = std::get_if<Fault>(&compiled))
    POLYPHONY_CHECK(false, "the Program of " << label << " cannot run: " << fault->text);
  return std::get<Compiled>(std::move(compiled));
}

class RunReader {
 public:
  RunReader(const MeasuredRun& run, const HardwareProfile& prior, const ParameterList& parameters)
      : program_(*run.program), prior_(prior), compiled_(compile_or_fail(*run.program, run.label)) {
    features_ = features(program_, compiled_, run.cluster, prior, parameters);
    const std::vector<CoreShare> shared = find_shared_cores(program_, run.steps);
    for (const Timeline& step : run.steps)
      take_waiting(program_, step, shared, steps_.emplace_back(find_activity(program_, step)));
  }

  void add_to(Rows& rows) const {
    const std::vector<std::uint32_t> sets = rendezvous_sets(program_);
    std::vector<std::vector<OpId>> members(program_.ops.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op) members[sets[op]].push_back(OpId(op));
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      if (members[op].empty()) continue;
      const Op& what = program_.ops[op];
      if (const auto* exchange = std::get_if<Exchange>(&what.what)) {
        if (!exchange->sends) add(rows[RowKind::message], {members[op]}, receive_row(*exchange));
      } else if (std::holds_alternative<Update>(what.what)) {
        add_update(rows[RowKind::update], op, sets, members);
      } else if (!is_step_scalars(what) && !std::holds_alternative<HostCopy>(what.what)) {
        const auto* const compute = std::get_if<Compute>(&what.what);
        if (compute != nullptr && is_given(program_, *compute, prior_)) continue;
        add(rows[compute != nullptr ? RowKind::compute : RowKind::collective], {members[op]},
            node_row(compiled_.op_start[op]));
      }
    }
  }

 private:
  static bool is_step_scalars(const Op& op) {
    const auto* collective = std::get_if<Collective>(&op.what);
    return collective != nullptr && !collective->params.valid();
  }

  // The global norm is reduced in the collective of the step scalars: its time counts with the
  // update.
  void add_update(std::vector<FitRow>& rows, std::size_t op, const std::vector<std::uint32_t>& sets,
                  const std::vector<std::vector<OpId>>& members) const {
    FitRow row = node_row(compiled_.op_start[op]);
    std::vector<std::vector<OpId>> together{{OpId(op)}};
    const Range waits = program_.ops[op].waits_for;
    for (auto w = waits.begin; w < waits.end; ++w) {
      const OpId wait = program_.waits[w];
      if (!is_step_scalars(program_.ops[wait.value])) continue;
      const FitRow scalars = node_row(compiled_.op_start[wait.value]);
      row.offset += scalars.offset;
      row.terms.insert(row.terms.end(), scalars.terms.begin(), scalars.terms.end());
      together.push_back(members[sets[wait.value]]);
    }
    add(rows, together, std::move(row));
  }

  FitRow node_row(std::uint32_t node) const {
    return {0, features_.base[node], features_.terms[node]};
  }

  FitRow receive_row(const Exchange& exchange) const {
    if (message_node_.empty()) find_message_nodes();
    FitRow row;
    std::map<std::size_t, double> slopes;
    for (auto i = exchange.messages.begin; i < exchange.messages.end; ++i) {
      const std::uint32_t node = message_node_.at(program_.exchange_messages[i].value);
      row.offset = std::max(row.offset, features_.base[node]);
      for (const FitTerm& term : features_.terms[node]) {
        double& slope = slopes[term.parameter];
        slope = ParameterList::is_slowness(term.parameter) ? slope + term.slope
                                                           : std::max(slope, term.slope);
      }
    }
    for (const auto& [parameter, slope] : slopes) row.terms.push_back({parameter, slope, 0});
    return row;
  }

  void find_message_nodes() const {
    for (std::size_t node = 0; node < compiled_.nodes.size(); ++node) {
      if (compiled_.nodes[node].kind != NodeKind::message) continue;
      message_node_[compiled_.nodes[node].what] = static_cast<std::uint32_t>(node);
    }
  }

  // `together`: consecutive activities, whose times add up.
  void add(std::vector<FitRow>& rows, const std::vector<std::vector<OpId>>& together,
           FitRow row) const {
    if (row.terms.empty()) return;  // no parameter depends on it
    std::vector<Seconds> times;
    for (const Activity& step : steps_) {
      std::optional<Seconds> sum = Seconds{};
      for (const std::vector<OpId>& members : together) {
        const std::optional<Seconds> time = time_at_work(step, members);
        sum = sum && time ? std::optional(*sum + *time) : std::nullopt;
      }
      if (sum) times.push_back(*sum);
    }
    if (times.empty()) return;
    const Spread all = spread(std::move(times));
    row.measured = all.mean.count();
    row.noise = all.repeatability() * kQuartileToSigma * kMedianToMean /
                std::sqrt(static_cast<double>(all.count));
    rows.push_back(std::move(row));
  }

  const Program& program_;
  const HardwareProfile& prior_;
  Compiled compiled_;
  Features features_;
  std::vector<Activity> steps_;
  mutable std::map<std::uint32_t, std::uint32_t> message_node_;
};

std::vector<FitParameter> prior_of(const ParameterList& list, const HardwareProfile& profile) {
  std::vector<FitParameter> result;
  for (std::size_t p = 0; p < list.count(); ++p) {
    FitParameter parameter;
    parameter.prior = list.of(profile, p);
    const bool ratio = ParameterList::is_slowness(p) || p >= ParameterList::fixed_count;
    const Seconds small = p == ParameterList::dispatch ? kSmallDispatch : kSmallOverhead;
    const double least_ratio = ParameterList::is_slowness(p) ? kLeastSlowness : kLeastRatio;
    parameter.lower = ratio ? std::min(least_ratio, parameter.prior) : 0;
    const double least = ratio ? least_ratio : small.count();
    double wide = kPriorDeviation;
    if (p >= ParameterList::fixed_count) wide = kComputeDeviation;
    if (p == ParameterList::dispatch || p == ParameterList::op_overhead) wide = kFixedCostDeviation;
    parameter.deviation = wide * std::max(parameter.prior, least);
    result.push_back(parameter);
  }
  return result;
}

// The current prior of the fits.
struct Belief {
  std::vector<FitParameter> parameters;
  std::vector<std::size_t> counts;  // number of rows by parameter
  Covariance covariance;

  explicit Belief(std::vector<FitParameter> prior)
      : parameters(std::move(prior)), counts(parameters.size(), 0) {
    covariance.informed.assign(parameters.size(), 0);
    covariance.of.assign(parameters.size() * parameters.size(), 0);
  }
};

// Fits the rows and makes the result the prior of the following fits. Returns the noise.
double learn(Belief& belief, std::vector<FitRow> rows) {
  if (rows.empty()) return 0;
  std::vector<FitParameter>& parameters = belief.parameters;
  FitProblem problem{parameters, std::move(rows), ParameterList::dispatch, kClockNoise.count()};
  const Fit result = fit(problem);
  const std::size_t count = parameters.size();
  std::vector<std::size_t> touched;
  for (std::size_t p = 0; p < count; ++p) {
    if (result.rows[p] == 0 &&
        !(p == ParameterList::dispatch && result.standard_error[p] < parameters[p].deviation)) {
      continue;
    }
    parameters[p].prior = result.value[p];
    parameters[p].deviation = std::max(result.standard_error[p], 1e-9 * parameters[p].deviation);
    belief.counts[p] += result.rows[p];
    belief.covariance.informed[p] = 1;
    touched.push_back(p);
  }
  for (const std::size_t a : touched)
    for (const std::size_t b : touched)
      belief.covariance.of[a * count + b] = result.covariance[a * count + b];
  return result.noise;
}

Seconds estimated_step(const MeasuredRun& run, const HardwareProfile& profile) {
  const Compiled compiled = compile_or_fail(*run.program, run.label);
  return estimate(*run.program, compiled, price(*run.program, compiled, run.cluster, profile))
      .step();
}

RunError run_error(const MeasuredRun& run, const HardwareProfile& prior,
                   const HardwareProfile& fitted) {
  std::vector<Seconds> steps;
  for (const Timeline& step : run.steps) steps.push_back(step.makespan);
  const Spread measured = spread(std::move(steps));
  RunError error{run.label, measured.median, 0, 0, measured.repeatability()};
  if (measured.median > Seconds{}) {
    error.before = (estimated_step(run, prior) - measured.median) / measured.median;
    error.after = (estimated_step(run, fitted) - measured.median) / measured.median;
  }
  error.shared_cores = find_shared_cores(*run.program, run.steps);
  return error;
}

double predicted_spread(const MeasuredRun& run, const HardwareProfile& profile) {
  const Compiled compiled = compile_or_fail(*run.program, run.label);
  const CostTable costs = price(*run.program, compiled, run.cluster, profile);
  return spread(jittered_steps(compiled, costs, *profile.certainty.jitter, 0, kJitterDraws))
      .repeatability();
}

}  // namespace

Calibration calibrate(const HardwareProfile& prior, const std::vector<MeasuredRun>& runs,
                      const std::string& name, const std::string& software,
                      const std::string& source) {
  POLYPHONY_CHECK(!runs.empty(), "no measured run");
  std::vector<const Program*> programs;
  for (const MeasuredRun& run : runs) programs.push_back(run.program);
  const ParameterList list(programs, prior);
  Rows rows;
  for (const MeasuredRun& run : runs) RunReader(run, prior, list).add_to(rows);

  Calibration result;
  const std::vector<FitParameter> before = prior_of(list, prior);
  Belief belief(before);
  result.collective_noise = learn(belief, std::move(rows[RowKind::collective]));
  result.message_noise = learn(belief, std::move(rows[RowKind::message]));
  learn(belief, std::move(rows[RowKind::update]));
  result.compute_noise = learn(belief, std::move(rows[RowKind::compute]));

  std::vector<double> value;
  for (std::size_t p = 0; p < list.count(); ++p) {
    const FitParameter& fitted = belief.parameters[p];
    value.push_back(fitted.prior);
    result.parameters.push_back({list.text(p), before[p].prior, value[p], fitted.deviation,
                                 belief.counts[p],
                                 fitted.deviation < kInformed * before[p].deviation});
  }
  result.profile = prior;
  list.apply(value, result.profile);
  result.profile = reached_is_peak(std::move(result.profile));
  result.profile.name = name;
  result.profile.software = software;
  result.profile.source = source;
  result.profile.step_error = kLeastStepError;
  std::vector<MeasuredRun> undisturbed;
  for (const MeasuredRun& run : runs) {
    result.runs.push_back(run_error(run, prior, result.profile));
    if (result.runs.back().shared_cores.empty()) undisturbed.push_back(run);
  }
  if (undisturbed.empty()) undisturbed = runs;
  for (const RunError& error : result.runs)
    if (error.shared_cores.empty() || undisturbed.size() == runs.size())
      result.profile.step_error =
          std::max({result.profile.step_error, std::abs(error.after), error.repeatability});
  Certainty& certainty = result.profile.certainty;
  certainty = fitted_certainty(list, value, belief.covariance, prior, runs, result.runs,
                               result.profile.step_error);
  certainty.source = source;
  certainty.fitted = seen_ranges(programs);
  certainty.jitter = measure_jitter(undisturbed, result.profile);
  for (std::size_t run = 0; certainty.jitter && run < runs.size(); ++run)
    result.runs[run].jitter_repeatability = predicted_spread(runs[run], result.profile);
  return result;
}

}  // namespace polyphony::traces
