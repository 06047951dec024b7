#include "sim/evidence/step_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shared/chance/belief.h"
#include "shared/chance/effects.h"
#include "shared/chance/misses.h"
#include "shared/check/check.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/parameter.h"
#include "shared/statistics.h"
#include "sim/evidence/kernel_rows.h"
#include "sim/evidence/quick_step.h"
#include "traces/calibrate/certainty.h"
#include "traces/calibrate/evidence_prior.h"
#include "traces/calibrate/posterior.h"

namespace polyphony::sim {
namespace {

constexpr double kSettled = 0.005;       // in prior deviations
constexpr double kNegligible = 1e-4;     // relative change; as in traces/calibrate/certainty.cpp
constexpr double kInformed = 0.99;       // relative to the prior deviation
constexpr double kLeastResidual = 0.02;  // relative; assumed lower limit

struct Priced {
  Seconds step{};
  std::vector<double> effects;
};

Priced priced(const Scenario& scenario, const HardwareProfile& profile) {
  const Prediction prediction = quick_step(scenario, profile);
  return {prediction.step(),
          step_effects(prediction.program, prediction.compiled, scenario.cluster, profile)};
}

// The times of all rows of some kernels.
std::vector<Priced> priced(const KernelRows& kernels, const HardwareProfile& profile) {
  const auto effects = effects_on_all(
      [&](const Moved& move) {
        std::vector<double> logs;
        for (const Seconds time : kernels.predicted(move(profile)))
          logs.push_back(std::log(time.count()));
        return logs;
      },
      profile);
  std::vector<Priced> rows;
  for (const Seconds time : kernels.predicted(profile))
    rows.push_back({time, effects.empty() ? std::vector<double>() : effects[rows.size()]});
  return rows;
}

// Errors for a profile that states none: in the parameters for which all fits state errors.
std::vector<ParameterError> assumed_errors() {
  std::vector<ParameterError> errors;
  for (const ParameterError& error :
       shipped_certainty(shipped_fits().front(), Footing::known).errors)
    errors.push_back({{error.begin()->first, traces::kUnknown}});
  return errors;
}

class Fitter {
 public:
  Fitter(const HardwareProfile& prior, const std::vector<StepEvidence>& evidence)
      : prior_(prior), evidence_(evidence) {
    if (prior_.certainty.errors.empty()) prior_.certainty.errors = assumed_errors();
    prior_.certainty.misses.clear();  // they are of the parameters and errors before this fit
    for (std::size_t i = 0; i < evidence.size(); ++i) {
      if (evidence[i].step) timed_.push_back(i);
      if (evidence[i].kernels.empty()) continue;
      profiled_.push_back(i);
      kernels_.emplace_back(evidence[i], prior_);
    }
    if (empty()) return;
    for (const std::size_t i : timed_) first_.push_back(priced(evidence_[i].scenario, prior_));
    widen();
    if (!kernels_.empty()) {
      free_measured();
      first_ = priced_rows(prior_);
    }
    set_bounds();
    settle();
  }

  const std::vector<std::size_t>& timed() const { return timed_; }
  const std::vector<std::size_t>& profiled() const { return profiled_; }
  const std::vector<KernelRows>& kernels() const { return kernels_; }
  bool empty() const { return timed_.empty() && profiled_.empty(); }
  const traces::PosteriorFit& fit() const { return fit_; }
  double own() const { return own_; }
  Seconds before(std::size_t row) const { return first_[row].step; }
  // The rows of the fit: the timed steps, then the kernels of each profiled run.
  std::size_t first_row_of(std::size_t profiled) const {
    std::size_t row = timed_.size();
    for (std::size_t i = 0; i < profiled; ++i) row += kernels_[i].rows().size();
    return row;
  }
  const std::vector<ParameterError>& prior_errors() const { return prior_.certainty.errors; }

  HardwareProfile at(const std::vector<double>& z) const {
    std::map<std::string, double> moves;
    for (std::size_t k = 0; k < z.size(); ++k)
      for (const auto& [key, change] : prior_.certainty.errors[k]) moves[key] += z[k] * change;
    HardwareProfile profile = prior_;
    for (const auto& [key, move] : moves) {
      const double value = parameter(prior_, key);
      if (move == 0 || !(value > 0)) continue;
      const ParameterRange range = parameter_range(prior_, key);
      const double wanted = std::clamp(value * std::exp(move), range.low, range.high);
      scale_parameter(profile, key, wanted / value);
    }
    return profile;
  }

  HardwareProfile fitted() const { return at(fit_.posterior.mean); }

 private:
  std::vector<Priced> priced_rows(const HardwareProfile& profile) const {
    std::vector<Priced> rows;
    for (const std::size_t i : timed_) rows.push_back(priced(evidence_[i].scenario, profile));
    for (const KernelRows& kernels : kernels_)
      for (Priced& row : priced(kernels, profile)) rows.push_back(std::move(row));
    return rows;
  }

  void widen() {
    std::vector<Priced> steps = first_;
    if (timed_.empty())
      for (const std::size_t i : profiled_) steps.push_back(priced(evidence_[i].scenario, prior_));
    std::vector<double> typical(prior_.certainty.errors.size(), 0.0);
    for (const Priced& row : steps)
      for (std::size_t k = 0; k < typical.size(); ++k)
        typical[k] += std::abs(row.effects[k]) / static_cast<double>(steps.size());
    const Certainty& certainty = prior_.certainty;
    if (certainty.footing == Footing::stated) {
      const Belief belief = make_belief(steps.front().step, steps.front().effects, prior_);
      own_ = certainty.residual ? *certainty.residual
                                : std::max(belief.residual, shipped_residuals().known);
    } else {
      const traces::EvidencePrior wide =
          traces::evidence_prior(certainty.errors, typical, certainty.footing, shipped_residuals());
      own_ = wide.own;
      for (std::size_t k = 0; k < typical.size(); ++k)
        for (auto& [key, change] : prior_.certainty.errors[k]) change *= wide.widening[k];
      for (Priced& row : first_)
        for (std::size_t k = 0; k < typical.size(); ++k) row.effects[k] *= wide.widening[k];
    }
    own_ = std::max(own_, kLeastResidual);
  }

  // Adds to the errors of the parameters that kernels measure directly, if a kernel depends on
  // them.
  void free_measured() {
    for (const KernelRows& kernels : kernels_)
      for (const std::string& key : measured_keys(kernels.rows(), prior_)) {
        const double stated = parameter_deviations(prior_.certainty)[key];
        if (stated >= traces::kUnknown || !(parameter(prior_, key) > 0)) continue;
        const ParameterError error{
            {key, std::sqrt(traces::kUnknown * traces::kUnknown - stated * stated)}};
        HardwareProfile alone = prior_;
        alone.certainty.errors = {error};
        const std::vector<Priced> rows = priced(kernels, alone);
        if (std::any_of(rows.begin(), rows.end(),
                        [](const Priced& row) { return row.effects.front() != 0; }))
          prior_.certainty.errors.push_back(error);
      }
  }

  // Bounds errors that change a single parameter. Other errors are bounded in at(), by clamping.
  void set_bounds() {
    constexpr double kFree = std::numeric_limits<double>::infinity();
    for (const ParameterError& error : prior_.certainty.errors) {
      double low = -kFree, high = kFree;
      if (error.size() == 1 && error.begin()->second != 0) {
        const auto& [key, change] = *error.begin();
        const double value = parameter(prior_, key);
        const ParameterRange range = parameter_range(prior_, key);
        if (value > 0 && range.high > 0)
          high = std::max(0.0, std::log(range.high / value)) / change;
        if (value > 0 && range.low > 0) low = std::min(0.0, std::log(range.low / value)) / change;
        if (change < 0) std::swap(low, high);
      }
      bounds_.low.push_back(low);
      bounds_.high.push_back(high);
    }
  }

  void settle() {
    const std::size_t errors = prior_.certainty.errors.size();
    std::vector<double> z(errors, 0.0);
    std::vector<Priced> at_point = first_;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<traces::SurpriseRow> rows;
      const auto add = [&](Seconds measured, double own) {
        const Priced& here = at_point[rows.size()];
        double surprise = std::log(measured / here.step);
        for (std::size_t k = 0; k < errors; ++k) surprise += here.effects[k] * z[k];
        rows.push_back({surprise, here.effects, own});
      };
      for (const std::size_t i : timed_)
        add(*evidence_[i].step, std::hypot(own_, evidence_[i].noise));
      for (const KernelRows& kernels : kernels_)
        for (const KernelRow& row : kernels.rows()) add(row.measured, row.noise);
      fit_ = traces::fit_posterior(rows, errors, prior_.certainty.freedom, bounds_);
      double moved = 0;
      for (std::size_t k = 0; k < errors; ++k)
        moved = std::max(moved, std::abs(fit_.posterior.mean[k] - z[k]));
      z = fit_.posterior.mean;
      if (moved < kSettled) break;
      const HardwareProfile here = at(z);
      at_point = priced_rows(here);
    }
  }

  HardwareProfile prior_;  // with widened errors
  const std::vector<StepEvidence>& evidence_;
  std::vector<std::size_t> timed_, profiled_;  // positions in the evidence
  std::vector<KernelRows> kernels_;            // by profiled evidence
  std::vector<Priced> first_;                  // by row, at the prior
  traces::ZBounds bounds_;
  traces::PosteriorFit fit_;
  double own_ = 0;
};

// Returns the errors that remain after the fit, as independent error directions.
std::vector<ParameterError> errors_left(const std::vector<ParameterError>& prior,
                                        const std::vector<double>& covariance) {
  const std::vector<double> ways = traces::independent_ways(covariance);
  const std::size_t n = prior.size();
  std::vector<ParameterError> errors;
  for (std::size_t way = 0; way < n; ++way) {
    ParameterError error;
    for (std::size_t k = 0; k < n; ++k)
      for (const auto& [key, change] : prior[k]) error[key] += ways[k * n + way] * change;
    std::erase_if(error, [](const auto& entry) { return std::abs(entry.second) < kNegligible; });
    for (auto& [key, change] : error) change = std::round(change * 1e6) / 1e6;
    if (!error.empty()) errors.push_back(std::move(error));
  }
  return errors;
}

void state(const HardwareProfile& prior, const Fitter& fitter,
           const std::vector<StepEvidence>& evidence, HardwareProfile& profile) {
  Certainty& certainty = profile.certainty;
  certainty = prior.certainty;
  certainty.misses.clear();
  certainty.errors = errors_left(fitter.prior_errors(), fitter.fit().posterior.covariance);
  certainty.residual = std::round(fitter.own() * 1e6) / 1e6;
  certainty.footing = Footing::stated;
  std::string sources;
  for (const StepEvidence& one : evidence)
    if (one.step || !one.kernels.empty()) sources += (sources.empty() ? "" : ", ") + one.source;
  certainty.source =
      std::string(fitter.profiled().empty() ? "step times" : "step and kernel times") + " of " +
      sources + "; before: " + prior.name;
  profile.source = certainty.source;
  profile.software = prior.stack.name + ", as in " + sources;
  double widest = 0;
  std::vector<KnownMiss> misses;  // what the fitted profile leaves unexplained
  for (std::size_t r = 0; r < fitter.timed().size(); ++r) {
    const StepEvidence& one = evidence[fitter.timed()[r]];
    Priced here = priced(one.scenario, profile);
    widest = std::max(widest, make_belief(here.step, here.effects, profile).deviation());
    if (fitter.fit().unseen[r].outlier) continue;
    misses.push_back({one.source, measured_text(one.scenario),
                      compared_parts(require_layout(one.scenario)), std::log(*one.step / here.step),
                      one.noise, std::move(here.effects)});
  }
  if (fitter.timed().empty()) {
    const Priced here = priced(evidence[fitter.profiled().front()].scenario, profile);
    widest = make_belief(here.step, here.effects, profile).deviation();
  }
  profile.step_error = std::expm1(central(0.9, certainty.freedom) * widest);
  certainty.misses = std::move(misses);
}

}  // namespace

std::map<std::string, double> parameter_deviations(const Certainty& certainty) {
  std::map<std::string, double> squares;
  for (const ParameterError& error : certainty.errors)
    for (const auto& [key, change] : error) squares[key] += change * change;
  for (auto& [key, square] : squares) square = std::sqrt(square);
  return squares;
}

StepCalibration calibrate_steps(const HardwareProfile& prior,
                                const std::vector<StepEvidence>& evidence,
                                const std::string& name) {
  const Fitter fitter(prior, evidence);
  StepCalibration result{prior, {}, {}, prior.certainty.freedom, {}, prior.name};
  if (!fitter.empty()) {
    result.profile = fitter.fitted();
    state(prior, fitter, evidence, result.profile);
  }
  result.profile.name = name;
  for (const StepEvidence& one : evidence) {
    const Prediction after = quick_step(one.scenario, result.profile);
    StepRow row{one.source, {}, {}, {}, 0, 0, false, one.memory, one.reserved, most_memory(after)};
    if (one.step) row.measured = *one.step, row.after = after.step();
    result.rows.push_back(row);
  }
  for (std::size_t r = 0; r < fitter.timed().size(); ++r) {
    StepRow& row = result.rows[fitter.timed()[r]];
    row.before = fitter.before(r);
    row.unseen = fitter.fit().unseen[r].miss;
    row.unseen_deviation = fitter.fit().unseen[r].deviation;
    row.outlier = fitter.fit().unseen[r].outlier;
  }
  for (std::size_t i = 0; i < fitter.profiled().size(); ++i) {
    const std::vector<Seconds> after = fitter.kernels()[i].predicted(result.profile);
    std::size_t at = fitter.first_row_of(i);
    for (const KernelRow& row : fitter.kernels()[i].rows()) {
      const Seconds now = after[at - fitter.first_row_of(i)];
      result.kernels.push_back({evidence[fitter.profiled()[i]].source, row.name, row.measured,
                                fitter.before(at), now, row.kernels, row.longest, row.longest_share,
                                fitter.fit().unseen[at].outlier});
      ++at;
    }
  }
  if (fitter.empty()) return result;
  Certainty wide;
  wide.errors = fitter.prior_errors();
  const auto before = parameter_deviations(wide),
             after = parameter_deviations(result.profile.certainty);
  for (const auto& [key, deviation] : before) {
    const auto left = after.find(key);
    const double now = left == after.end() ? 0 : left->second;
    result.parameters.push_back({key, parameter(prior, key), parameter(result.profile, key),
                                 deviation, now, now < kInformed * deviation});
  }
  return result;
}

}  // namespace polyphony::sim
