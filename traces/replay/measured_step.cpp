#include "traces/replay/measured_step.h"

#include <algorithm>
#include <set>

#include "shared/cost/cost_model.h"
#include "shared/cost/paced_costs.h"
#include "traces/replay/activity_class.h"
#include "traces/replay/matching.h"

namespace polyphony::traces {

CostTable price_on(const Machine& machine, const Program& program, const Compiled& compiled) {
  CostTable costs = price(program, compiled, machine.cluster, machine.profile);
  if (machine.pace) apply_pace(program, compiled, machine.cluster, *machine.pace, costs);
  return costs;
}

std::vector<std::string> class_labels(const Program& program) {
  std::set<std::string> labels;
  for (const Op& op : program.ops) labels.insert(class_label(program, op));
  return {labels.begin(), labels.end()};
}

bool is_of(const std::string& label, const std::string& what) {
  return label == what || label.rfind(what + " ", 0) == 0;
}

std::array<Seconds, kOrigins> total(const Mixture& mixture) {
  std::array<Seconds, kOrigins> sum{};
  for (const auto& [label, by] : mixture)
    for (std::size_t origin = 0; origin < kOrigins; ++origin) sum[origin] += by[origin];
  return sum;
}

std::optional<double> MeasuredStep::Sum::ratio() const {
  if (model.count() <= 0) return std::nullopt;
  return time / model;
}

MeasuredStep::MeasuredStep(const Program& program, const Compiled& compiled,
                           const Timeline& timeline, const Machine& machine)
    : machine_(machine) {
  const NodeTimes times = node_times(program, compiled, timeline);
  const CostTable model = price_on(machine, program, compiled);
  for (std::uint32_t node = 0; node < compiled.nodes.size(); ++node) {
    const Node& what = compiled.nodes[node];
    if (what.kind == NodeKind::join) continue;
    const Sample sample{times.time[node], unshared_time(model, node), node};
    for (const std::string& key : class_of(program, compiled, node, model.network).keys)
      samples_[key].push_back(sample);
    Sum& all = sums_[kind_key(program, what)];
    all.time += sample.time;
    all.model += sample.model;
    if (what.kind == NodeKind::compute)
      if (const auto* compute = std::get_if<Compute>(&program.ops[what.what].what))
        add_compute(program, *compute, sample);
  }
  for (auto& [key, all] : samples_)
    std::stable_sort(all.begin(), all.end(), [](const Sample& a, const Sample& b) {
      return a.model != b.model ? a.model < b.model : a.order < b.order;
    });
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const std::uint32_t node = compiled.op_start[op];
    if (compiled.predecessors[node] == 0)
      late_.try_emplace(stream_key(program, program.ops[op]), times.late[node]);
  }
}

void MeasuredStep::add_compute(const Program& program, const Compute& compute,
                               const Sample& sample) {
  std::vector<std::string> keys = phase_keys(program, compute);
  for (int layer = compute.layers.begin; layer < compute.layers.end; ++layer)
    keys.push_back(layer_key(program, compute, layer));
  for (const std::string& key : keys) {
    sums_[key].time += sample.time;
    sums_[key].model += sample.model;
  }
}

ReplayedCosts MeasuredStep::costs_of(const Program& program, const Compiled& compiled,
                                     const Machine& machine,
                                     const std::vector<Speedup>& faster) const {
  return Matching(*this, program, compiled, machine).run(faster);
}

}  // namespace polyphony::traces
