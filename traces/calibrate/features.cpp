#include "traces/calibrate/features.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "shared/error.h"
#include "shared/program/expand_op.h"

namespace polyphony::traces {
namespace {

// A probe value far from 1, so that rounding bytes to integers does not affect the slope.
constexpr double kSlowProbe = 1024;

Seconds* seconds_field(HardwareProfile& profile, std::size_t parameter) {
  switch (parameter) {
    case ParameterList::op_overhead:
      return &profile.op_overhead;
    case ParameterList::dispatch:
      return &profile.dispatch;
    case ParameterList::message_latency:
      return &profile.message_latency;
    case ParameterList::collective_latency:
      return &profile.collective_latency;
    case ParameterList::optimizer_overhead:
      return &profile.optimizer_overhead;
    default:
      return nullptr;
  }
}

double* efficiency_field(HardwareProfile& profile, std::size_t parameter) {
  switch (parameter) {
    case ParameterList::message_slowness:
      return &profile.message_efficiency;
    case ParameterList::collective_slowness:
      return &profile.collective_efficiency;
    case ParameterList::fabric_slowness:
      return &profile.fabric_efficiency;
    case ParameterList::optimizer_slowness:
      return &profile.optimizer_bytes_efficiency;
    default:
      return nullptr;
  }
}

class Prober {
 public:
  Prober(const Program& program, const Compiled& compiled, const Cluster& cluster,
         const HardwareProfile& profile, const ParameterList& parameters)
      : program_(program),
        compiled_(compiled),
        cluster_(cluster),
        parameters_(parameters),
        origin_(profile) {
    std::vector<double> zero(parameters.count(), 0.0);
    for (std::size_t p = 0; p < parameters.count(); ++p) zero[p] = rest(p);
    origin_.corrections.clear();
    parameters.apply(zero, origin_);
  }

  Features probe() {
    Features result;
    const std::vector<double> at_rest = times(origin_);
    result.base = at_rest;
    result.terms.resize(at_rest.size());
    HardwareProfile dispatched = origin_;
    dispatched.dispatch = Seconds(1);
    const std::vector<double> at_dispatch = times(dispatched);
    for (std::size_t p = 0; p < parameters_.count(); ++p) {
      const double distance = (ParameterList::is_slowness(p) ? kSlowProbe : 1) - rest(p);
      const std::vector<double> moved = times(with(origin_, p));
      const bool correction = p >= ParameterList::fixed_count;
      const std::vector<double> both = correction ? times(with(dispatched, p)) : moved;
      for (std::size_t node = 0; node < moved.size(); ++node) {
        const double slope = (moved[node] - at_rest[node]) / distance;
        const double product =
            correction ? both[node] - at_dispatch[node] - (moved[node] - at_rest[node]) : 0;
        if (slope != 0 || product != 0) result.terms[node].push_back({p, slope, product});
      }
    }
    for (std::size_t node = 0; node < result.base.size(); ++node) {
      keep_slower_link(result.terms[node]);
      for (const FitTerm& term : result.terms[node])
        result.base[node] -= term.slope * rest(term.parameter);
    }
    return result;
  }

 private:
  // The value at which a parameter costs the least: no latency, no correction, full efficiency.
  static double rest(std::size_t p) { return ParameterList::is_slowness(p) ? 1 : 0; }

  static void keep_slower_link(std::vector<FitTerm>& terms) {
    const auto of = [&](std::size_t p) {
      return std::find_if(terms.begin(), terms.end(),
                          [p](const FitTerm& term) { return term.parameter == p; });
    };
    const auto inside = of(ParameterList::collective_slowness);
    const auto between = of(ParameterList::fabric_slowness);
    if (inside == terms.end() || between == terms.end()) return;
    terms.erase(inside->slope < between->slope ? inside : between);
  }

  HardwareProfile with(HardwareProfile profile, std::size_t p) const {
    if (Seconds* field = seconds_field(profile, p)) {
      *field = Seconds(1);
    } else if (double* efficiency = efficiency_field(profile, p)) {
      *efficiency = 1 / kSlowProbe;
    } else {
      profile.corrections[parameters_.corrections()[p - ParameterList::fixed_count]] = 1;
    }
    return profile;
  }

  std::vector<double> times(const HardwareProfile& profile) const {
    const CostTable costs = price(program_, compiled_, cluster_, profile);
    std::vector<double> result;
    result.reserve(costs.nodes.size());
    for (std::size_t node = 0; node < costs.nodes.size(); ++node) {
      result.push_back(unshared_time(costs, static_cast<std::uint32_t>(node)).count());
    }
    return result;
  }

  const Program& program_;
  const Compiled& compiled_;
  const Cluster& cluster_;
  const ParameterList& parameters_;
  HardwareProfile origin_;
};

}  // namespace

bool ParameterList::is_slowness(std::size_t parameter) {
  HardwareProfile any;
  return efficiency_field(any, parameter) != nullptr;
}

bool is_given(const Program& program, const Compute& compute, const HardwareProfile& profile) {
  const Module& module = program.model.modules[compute.module.value];
  const ModuleLayout& grid = program.layout.modules[compute.module.value];
  for (int layer = compute.layers.begin; layer < compute.layers.end; ++layer)
    if (measured_layer(profile.layer_times, module, layer, grid.tp, grid.cp)) return true;
  return false;
}

ParameterList::ParameterList(const std::vector<const Program*>& programs,
                             const HardwareProfile& profile) {
  std::set<CorrectionKey> keys;
  for (const Program* program : programs) {
    std::set<std::tuple<ModuleId, LayerRange, Phase, Recipe>> seen;
    for (std::size_t op = 0; op < program->ops.size(); ++op) {
      const auto* compute = std::get_if<Compute>(&program->ops[op].what);
      if (compute == nullptr ||
          !seen.insert({compute->module, compute->layers, compute->phase, compute->recipe}).second)
        continue;
      if (is_given(*program, *compute, profile)) continue;
      for (const Kernel& kernel : expand(*program, OpId(op)).kernels)
        keys.insert({kernel.layer, compute->phase});
    }
  }
  keys_.assign(keys.begin(), keys.end());
}

std::string ParameterList::text(std::size_t parameter) const {
  switch (parameter) {
    case op_overhead:
      return "op overhead";
    case dispatch:
      return "dispatch per kernel";
    case message_latency:
      return "message latency";
    case message_slowness:
      return "1 / message efficiency";
    case collective_latency:
      return "collective latency per hop";
    case collective_slowness:
      return "1 / collective efficiency";
    case fabric_slowness:
      return "1 / fabric efficiency";
    case optimizer_overhead:
      return "optimizer overhead";
    case optimizer_slowness:
      return "1 / optimizer efficiency";
    default: {
      const CorrectionKey& key = keys_.at(parameter - fixed_count);
      return std::string(name(key.first)) + " " + name(key.second);
    }
  }
}

std::string ParameterList::key(std::size_t parameter) const {
  switch (parameter) {
    case op_overhead:
      return "op_overhead";
    case dispatch:
      return "dispatch";
    case message_latency:
      return "message_latency";
    case message_slowness:
      return "message_efficiency";
    case collective_latency:
      return "collective_latency";
    case collective_slowness:
      return "collective_efficiency";
    case fabric_slowness:
      return "fabric_efficiency";
    case optimizer_overhead:
      return "optimizer_overhead";
    case optimizer_slowness:
      return "optimizer_bytes_efficiency";
    default: {
      const CorrectionKey& correction = keys_.at(parameter - fixed_count);
      return std::string("corrections.") + name(correction.first) + "." + name(correction.second);
    }
  }
}

double ParameterList::of(const HardwareProfile& profile, std::size_t parameter) const {
  HardwareProfile copy = profile;
  if (const Seconds* field = seconds_field(copy, parameter)) return field->count();
  if (const double* efficiency = efficiency_field(copy, parameter)) return 1 / *efficiency;
  const auto found = profile.corrections.find(keys_.at(parameter - fixed_count));
  return found == profile.corrections.end() ? 1 : found->second;
}

void ParameterList::apply(const std::vector<double>& value, HardwareProfile& profile) const {
  POLYPHONY_CHECK(value.size() == count(), value.size() << " values");
  for (std::size_t p = 0; p < value.size(); ++p) {
    if (Seconds* field = seconds_field(profile, p)) {
      *field = Seconds(value[p]);
    } else if (double* efficiency = efficiency_field(profile, p)) {
      *efficiency = 1 / value[p];
    } else {
      profile.corrections[keys_[p - fixed_count]] = value[p];
    }
  }
}

Features features(const Program& program, const Compiled& compiled, const Cluster& cluster,
                  const HardwareProfile& profile, const ParameterList& parameters) {
  return Prober(program, compiled, cluster, profile, parameters).probe();
}

}  // namespace polyphony::traces
