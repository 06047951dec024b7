#include "traces/replay/matching.h"

#include <algorithm>
#include <cmath>

#include "shared/cost/op_layers.h"

namespace polyphony::traces {
namespace {

// Compares two modeled times of one activity up to rounding.
constexpr double kSame = 1e-9;
bool same(Seconds a, Seconds b) {
  return std::abs((a - b).count()) <= kSame * std::max(a.count(), b.count());
}

// Distance between two sizes.
double distance(Seconds a, Seconds b) {
  if (a.count() <= 0 || b.count() <= 0) return a == b ? 0 : HUGE_VAL;
  return std::abs(std::log(a / b));
}

// Key of all compute in MeasuredStep::sums_.
constexpr const char* kCompute = "compute";

const char* family(Phase phase) {
  return phase == Phase::forward || phase == Phase::recompute ? "forwards" : "backwards";
}

// Returns the measured machine with enough ranks for a larger layout.
Machine large_enough(const Machine& measured, const Machine& changed, std::uint32_t ranks) {
  Machine result = measured;
  if (static_cast<int>(ranks) > measured.cluster.ranks()) result.cluster = changed.cluster;
  return result;
}

}  // namespace

std::string kind_key(const Program& program, const Node& node) {
  if (node.kind == NodeKind::message) return "messages";
  if (node.kind == NodeKind::compute) return kCompute;
  if (node.kind == NodeKind::copy) return "copies";
  const auto& collective = std::get<Collective>(program.ops[node.what].what);
  return collective.params.valid() ? "collectives" : "scalars";
}

std::string stream_key(const Program& program, const Op& op) {
  const Stream& stream = program.streams[op.stream.value];
  return std::to_string(stream.rank.value) + " " + stream.name;
}

std::string layer_key(const Program& program, const Compute& compute, int layer) {
  return phase_keys(program, compute).front() + " layer " + std::to_string(layer);
}

std::vector<std::string> phase_keys(const Program& program, const Compute& compute) {
  const std::string module = "of " + program.model.modules[compute.module.value].name;
  return {module + " " + name(compute.phase), module + " " + family(compute.phase), module};
}

Matching::Matching(const MeasuredStep& from, const Program& program, const Compiled& compiled,
                   const Machine& machine)
    : from_(from),
      program_(program),
      compiled_(compiled),
      machine_(machine),
      then_(price_on(large_enough(from.machine_, machine, program.ranks), program, compiled)),
      now_(price_on(machine, program, compiled)),
      classes_(compiled.nodes.size()),
      pool_(compiled.nodes.size(), nullptr) {
  for (std::uint32_t node = 0; node < compiled.nodes.size(); ++node)
    if (compiled.nodes[node].kind != NodeKind::join)
      classes_[node] = class_of(program, compiled, node, now_.network);
  find_pools();
}

void Matching::find_pools() {
  for (std::uint32_t node = 0; node < compiled_.nodes.size(); ++node) {
    if (compiled_.nodes[node].kind == NodeKind::join) continue;
    pool_[node] = pool_of(node);
    if (pool_[node] != nullptr) ++pool_[node]->takers;
  }
}

// Returns the first sample of the nearest size; `samples` are sorted by size.
std::vector<Matching::Sample>::const_iterator Matching::nearest_of(
    const std::vector<Sample>& samples, Seconds size) {
  const auto below = [](const Sample& sample, Seconds other) { return sample.model < other; };
  auto nearest = std::lower_bound(samples.begin(), samples.end(), size, below);
  if (nearest != samples.begin() &&
      (nearest == samples.end() ||
       distance(std::prev(nearest)->model, size) <= distance(nearest->model, size)))
    nearest = std::prev(nearest);
  const Seconds least = nearest->model * (1 - kSame);
  return std::lower_bound(samples.begin(), samples.end(), least, below);
}

Matching::Pool* Matching::pool_of(std::uint32_t node) {
  const Seconds size = unshared_time(then_, node);
  for (const std::string& key : classes_[node].keys) {
    const auto found = from_.samples_.find(key);
    if (found == from_.samples_.end()) continue;
    const std::vector<Sample>& samples = found->second;
    const auto nearest = nearest_of(samples, size);
    const auto alike = [&](const Sample& sample) { return same(sample.model, nearest->model); };
    const auto end = std::find_if_not(nearest, samples.end(), alike);
    Pool& pool = pools_[{key, static_cast<std::size_t>(nearest - samples.begin())}];
    pool.first = &*nearest;
    pool.size = static_cast<std::size_t>(end - nearest);
    return &pool;
  }
  return nullptr;
}

Matching::Duration Matching::from_sample(const Sample& sample, std::uint32_t node) const {
  const Seconds model = unshared_time(now_, node);
  if (same(sample.model, model)) return {sample.time, Origin::measured, 0};
  const bool transfer = compiled_.nodes[node].kind != NodeKind::compute;
  if (transfer && (model >= sample.model || sample.time >= sample.model))
    return {sample.time + model - sample.model, Origin::scaled, 0};
  if (sample.model.count() <= 0) return {model, Origin::modelled, 1};
  return {sample.time * (model / sample.model), Origin::scaled, 0};
}

// Scales each layer like the measured ops that contained it; otherwise like other layers of the
// phase, of similar phases, of the module.
Matching::Duration Matching::from_layers(std::uint32_t node, const Compute& compute) const {
  const auto ratio_of = [&](const std::string& key) -> std::optional<double> {
    const auto found = from_.sums_.find(key);
    return found == from_.sums_.end() ? std::nullopt : found->second.ratio();
  };
  std::vector<std::string> wider = phase_keys(program_, compute);
  const std::optional<double> of_phase = ratio_of(wider.front());
  std::optional<double> general = of_phase;
  wider.emplace_back(kCompute);
  for (const std::string& key : wider)
    if (!general) general = ratio_of(key);
  const double otherwise = general.value_or(1);
  const std::vector<Seconds> layers = op_layer_times(program_, OpId(compiled_.nodes[node].what),
                                                     machine_.cluster, machine_.profile);
  Seconds weight{}, weighed{};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const int layer = compute.layers.begin + static_cast<int>(i);
    weight += layers[i];
    weighed += layers[i] * ratio_of(layer_key(program_, compute, layer)).value_or(otherwise);
  }
  const double ratio = weight.count() > 0 ? weighed / weight : otherwise;
  return {unshared_time(now_, node) * ratio, of_phase ? Origin::scaled : Origin::modelled, ratio};
}

Matching::Duration Matching::duration(std::uint32_t node) {
  if (Pool* pool = pool_[node]; pool != nullptr)
    return from_sample(pool->first[pool->taken++ * pool->size / pool->takers], node);
  const Node& what = compiled_.nodes[node];
  if (what.kind == NodeKind::compute)
    if (const auto* compute = std::get_if<Compute>(&program_.ops[what.what].what))
      return from_layers(node, *compute);
  const auto kind = from_.sums_.find(kind_key(program_, what));
  const double ratio = kind == from_.sums_.end() ? 1 : kind->second.ratio().value_or(1);
  return {unshared_time(now_, node) * ratio, Origin::modelled, ratio};
}

void Matching::add_lateness(CostTable& costs) const {
  for (std::size_t op = 0; op < program_.ops.size(); ++op) {
    const std::uint32_t node = compiled_.op_start[op];
    if (compiled_.predecessors[node] > 0) continue;
    const auto found = from_.late_.find(stream_key(program_, program_.ops[op]));
    if (found != from_.late_.end())
      costs.nodes[node].delay = std::max(costs.nodes[node].delay, found->second);
  }
}

ReplayedCosts Matching::run(const std::vector<Speedup>& faster) {
  ReplayedCosts result;
  result.costs.network = now_.network;
  result.costs.nodes.resize(compiled_.nodes.size());
  for (std::uint32_t node = 0; node < compiled_.nodes.size(); ++node) {
    if (compiled_.nodes[node].kind == NodeKind::join) continue;
    Duration given = duration(node);
    double factor = 1;
    for (const Speedup& speedup : faster)
      if (is_of(classes_[node].label, speedup.what)) factor /= speedup.factor;
    given.time *= factor;
    result.mixture[classes_[node].label][static_cast<std::size_t>(given.origin)] += given.time;
    NodeCost& cost = result.costs.nodes[node];
    const NodeCost& model = now_.nodes[node];
    if (given.origin != Origin::modelled || model.flows.size() == 0) {
      cost.duration = given.time;
      continue;
    }
    const double ratio = given.of_model * factor;
    cost.duration = ratio * (model.duration + model.delay);
    cost.flows.begin = static_cast<std::uint32_t>(result.costs.flows.size());
    for (auto i = model.flows.begin; i < model.flows.end; ++i) {
      Flow flow = now_.flows[i];
      flow.bytes = Bytes(std::llround(ratio * static_cast<double>(flow.bytes.value)));
      result.costs.flows.push_back(flow);
    }
    cost.flows.end = static_cast<std::uint32_t>(result.costs.flows.size());
  }
  add_lateness(result.costs);
  return result;
}

}  // namespace polyphony::traces
