#include "shared/split/fitted_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/lower/fold.h"
#include "shared/lower/lower.h"
#include "shared/plan/work_curve.h"
#include "shared/scenario/typical_batch.h"

namespace polyphony {
namespace {

std::vector<Recipe> ways_of(const ModuleLayout& grid) {
  if (!grid.recompute_blocks.empty()) return {Recipe::layout};
  std::vector<Recipe> ways{Recipe::none};
  if (grid.recompute >= Recompute::selective) ways.push_back(Recipe::selective);
  if (grid.recompute == Recompute::full) ways.push_back(Recipe::full);
  if (grid.offload_activations) ways.push_back(Recipe::offload);
  return ways;
}

// Costs of one work on one stage.
struct Measured {
  double forward = 0, input = 0, weight = 0, message = 0, kept = 0, held = 0, moved = 0, copy = 0;
};
using Figure = double Measured::*;
constexpr Figure kFigures[] = {&Measured::forward, &Measured::input, &Measured::weight,
                               &Measured::message, &Measured::kept,  &Measured::held,
                               &Measured::moved,   &Measured::copy};
constexpr WorkCurve StageCurves::* kCurves[] = {
    &StageCurves::forward, &StageCurves::input, &StageCurves::weight, &StageCurves::message,
    &StageCurves::kept,    &StageCurves::held,  &StageCurves::moved,  &StageCurves::copy};

// Sums over the ops of a Program, by stage and work.
class StepCensus {
 public:
  StepCensus(const Plan& plan, const Program& program, const Cluster& cluster,
             const HardwareProfile& profile)
      : plan_(plan), program_(program) {
    auto compiled = compile(program);
    POLYPHONY_CHECK(std::holds_alternative<Compiled>(compiled),
                    "lowering made a Program that cannot run");
    graph_ = std::get<Compiled>(std::move(compiled));
    costs_ = price(program, graph_, cluster, profile);
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n)
      if (graph_.nodes[n].kind == NodeKind::message) message_node_[graph_.nodes[n].what] = n;
    for (std::size_t b = 0; b < plan.branches.size(); ++b) {
      const Branch& branch = plan.branches[b];
      for (std::size_t s = 0; s < branch.stages.size(); ++s)
        for (const Chunk& chunk : branch.stages[s].chunks)
          stage_of_[{chunk.module, chunk.layers}] = {b, s};
      measured.emplace_back(branch.stages.size() * program.works.size());
    }
    for (std::size_t r = 0; r < program.rank_ops.size(); ++r) add_rank(r);
  }

  // Returns the memory of each rank without saved activations and rows at boundaries.
  std::vector<RankMemory> memory() const {
    Program rest = program_;
    for (Buffer& buffer : rest.buffers)
      if (buffer.kind == BufferKind::tape || buffer.kind == BufferKind::boundary)
        buffer.bytes = Bytes(0);
    return predict_memory(rest, estimate(program_, graph_, costs_).timeline);
  }

  // [branch][stage · works of all branches + work]
  std::vector<std::vector<Measured>> measured;

 private:
  struct Place {
    std::size_t branch = 0, at = 0;  // at: in measured
    auto operator<=>(const Place&) const = default;
  };

  void add_rank(std::size_t rank) {
    std::map<Place, Measured> mine;
    const Range ops = program_.rank_ops[rank];
    for (std::uint32_t i = ops.begin; i < ops.end; ++i) {
      const Op& op = program_.ops[i];
      if (const auto* compute = std::get_if<Compute>(&op.what)) {
        Measured& sum = mine[place_of(*compute)];
        const double seconds = unshared_time(costs_, graph_.op_start[i]).count();
        const bool learns = compute->phase != Phase::forward;
        (compute->phase == Phase::forward           ? sum.forward
         : compute->phase == Phase::backward_weight ? sum.weight
                                                    : sum.input) += seconds;
        if (learns) sum.kept += bytes(op, Use::free, false);
        if (learns) sum.moved += bytes(op, Use::free, false) - bytes(op, Use::free, true);
        if (compute->phase == Phase::backward_weight) sum.held += waiting(op);
      } else if (const auto* sent = std::get_if<Exchange>(&op.what); sent && sent->sends) {
        for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w) {
          const auto* made = std::get_if<Compute>(&program_.ops[program_.waits[w].value].what);
          if (!made || made->phase != Phase::forward) continue;
          double& seconds = mine[place_of(*made)].message;
          for (std::uint32_t m = sent->messages.begin; m < sent->messages.end; ++m)
            seconds = std::max(
                seconds,
                unshared_time(costs_, message_node_.at(program_.exchange_messages[m].value))
                    .count());
        }
      }
    }
    add_kept_without_backward(ops, mine);
    for (const auto& [place, sum] : mine) {
      Measured& most = measured[place.branch][place.at];
      for (const Figure figure : kFigures) most.*figure = std::max(most.*figure, sum.*figure);
    }
  }

  void add_kept_without_backward(const Range& ops, std::map<Place, Measured>& mine) const {
    for (std::uint32_t i = ops.begin; i < ops.end; ++i)
      if (const auto* compute = std::get_if<Compute>(&program_.ops[i].what);
          compute && compute->phase == Phase::forward)
        if (Measured& sum = mine[place_of(*compute)]; sum.input == 0 && sum.weight == 0)
          sum.kept += bytes(program_.ops[i], Use::allocate, true);
  }

  double bytes(const Op& op, Use use, bool boundaries_alone) const {
    double sum = 0;
    for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
      const BufferUse& one = program_.buffer_uses[u];
      const Buffer& buffer = program_.buffers[one.buffer.value];
      if (one.use == use && (buffer.kind == BufferKind::boundary ||
                             (buffer.kind == BufferKind::tape && !boundaries_alone)))
        sum += static_cast<double>(buffer.bytes.value);
    }
    return sum;
  }

  // Returns the bytes that an op frees and that other ops have allocated.
  double waiting(const Op& op) const {
    std::map<BufferId, double> freed;
    for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u)
      if (const BufferUse& one = program_.buffer_uses[u]; one.use == Use::free)
        freed[one.buffer] = static_cast<double>(program_.buffers[one.buffer.value].bytes.value);
    for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u)
      if (program_.buffer_uses[u].use == Use::allocate) freed.erase(program_.buffer_uses[u].buffer);
    double sum = 0;
    for (const auto& [buffer, bytes] : freed) sum += bytes;
    return sum;
  }

  Place place_of(const Compute& compute) const {
    const auto [branch, stage] = stage_of_.at({compute.module, compute.layers});
    return {branch, stage * program_.works.size() + compute.work.value};
  }

  const Plan& plan_;
  const Program& program_;
  std::map<std::pair<ModuleId, LayerRange>, std::pair<std::size_t, std::size_t>> stage_of_;
  std::map<std::uint32_t, std::uint32_t> message_node_;
  Compiled graph_;
  CostTable costs_;
};

StageCurves curves_of(const Program& program, const Branch& branch, std::size_t number,
                      std::size_t stage, const std::vector<Measured>& measured) {
  const ModuleId module = branch.stages.front().chunks.front().module;
  StageCurves curves;
  for (std::size_t f = 0; f < std::size(kFigures); ++f) {
    std::vector<CurvePoint> points;
    for (std::size_t w = 0; w < program.works.size(); ++w) {
      if (program.works[w].branch != number) continue;
      const WorkSize& size = program.size_of(WorkId(w), module);
      if (size.tokens > 0)
        points.push_back({static_cast<double>(size.tokens), static_cast<double>(size.pairs),
                          measured[stage * program.works.size() + w].*kFigures[f]});
    }
    curves.*kCurves[f] = fit_curve(points);
  }
  return curves;
}

// Covers the error of the fitted curves and rows that arrive before their action begins. The step
// time that the search assumes is within this of the estimate
// (tests/shared/step/searched_step_test.cpp).
constexpr double kCurveError = 0.02;

// Returns the bytes available for saved activations and rows at boundaries, by index along the
// branch's pipeline; empty if the device's memory is not known.
std::vector<double> room_of(const Program& program, const Branch& branch,
                            const std::vector<RankMemory>& memory, Bytes device) {
  if (device.value == 0) return {};
  std::vector<double> room(static_cast<std::size_t>(branch.grid.pp),
                           static_cast<double>(device.value));
  for (std::size_t r = 0; r < memory.size(); ++r) {
    const int index = branch.index_of(Rank(r));
    if (index < 0 || program.rank_ops[r].begin == program.rank_ops[r].end) continue;
    double& least = room[static_cast<std::size_t>(index)];
    least = std::min(least, std::max(0.0, static_cast<double>((device - memory[r].peak).value) *
                                              (1 - kCurveError)));
  }
  return room;
}

// Returns the actions with the given recipes; backwards are whole, or in two parts that follow each
// other directly.
template <class RecipeOf>
Actions run_so(const Actions& actions, RecipeOf recipe_of, bool apart) {
  Actions result;
  for (Action action : actions) {
    if (action.kind == ActionKind::backward_weight) continue;
    action.overlapped = false;
    if (is_forward(action)) {
      action.recipe = recipe_of(action.branch);
    } else {
      action.kind = apart ? ActionKind::backward_input : ActionKind::backward;
    }
    result.push_back(action);
    if (is_forward(action) || !apart) continue;
    action.kind = ActionKind::backward_weight;
    result.push_back(action);
  }
  return result;
}

using Census = std::vector<std::vector<Measured>>;
// The search has a single total time for a backward, whole or in parts. Where the two differ by
// more than kCurveError, the backward stays whole.
void take_parts(const Census& apart, Census& whole) {
  for (std::size_t b = 0; b < whole.size(); ++b) {
    double parts = 0, wholes = 0;
    for (std::size_t at = 0; at < whole[b].size(); ++at) {
      parts += apart[b][at].input + apart[b][at].weight;
      wholes += whole[b][at].input;
    }
    if (parts > (1 + kCurveError) * wholes) continue;
    for (std::size_t at = 0; at < whole[b].size(); ++at) {
      Measured& one = whole[b][at];
      one.weight = std::min(one.input, apart[b][at].weight);
      one.input -= one.weight;
      one.held = apart[b][at].held;
    }
  }
}

void send_away(bool goes, const Cluster& cluster, const HardwareProfile& profile,
               std::vector<Measured>& works) {
  const Network network = make_network(cluster, 1, HostCopies::folded);
  const BytesPerSecond rate =
      network.rate(Rank(0), network.host(Rank(0))) * profile.host_efficiency;
  for (Measured& work : works) {
    if (!goes) work.moved = 0;
    work.kept -= work.moved;
    if (work.moved == 0 || cluster.free_links) continue;
    work.copy =
        (profile.host_latency + cluster.host_link.latency + Bytes(std::llround(work.moved)) / rate)
            .count();
  }
}

}  // namespace

void fit_stage_costs(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                     Plan& plan) {
  Folded whole{plan, typical_batch(scenario)};
  auto folded = fold(scenario, layout, plan, whole.batch, Lanes::busiest);
  if (auto* kept = std::get_if<Folded>(&folded)) whole = std::move(*kept);
  const Cluster healthy = scenario.cluster.healthy();
  std::size_t most = 0;
  for (const Branch& branch : plan.branches) most = std::max(most, ways_of(branch.grid).size());
  std::vector<StageCosts> fitted(plan.branches.size());
  const StepPlan own = make_step_plan(scenario, layout, whole.plan, whole.batch);
  for (std::size_t way = 0; way < most; ++way) {
    const auto recipe_of = [&](std::size_t branch) {
      const std::vector<Recipe> ways = ways_of(plan.branches[branch].grid);
      return ways[std::min(way, ways.size() - 1)];
    };
    const auto lowered = [&](bool apart) {
      StepPlan step = own;
      for (Actions& actions : step.orders) actions = run_so(actions, recipe_of, apart);
      return lower(scenario, layout, whole.plan, step, whole.batch, StepKind::train, profile.stack);
    };
    const Program program = lowered(false), in_parts = lowered(true);
    StepCensus census(whole.plan, program, healthy, profile);
    take_parts(StepCensus(whole.plan, in_parts, healthy, profile).measured, census.measured);
    for (std::size_t b = 0; b < plan.branches.size(); ++b)
      send_away(recipe_of(b) == Recipe::offload, healthy, profile, census.measured[b]);
    const std::vector<RankMemory> memory = census.memory();
    for (std::size_t b = 0; b < plan.branches.size(); ++b) {
      const Branch& branch = plan.branches[b];
      if (way >= ways_of(branch.grid).size()) continue;
      StageCosts& costs = fitted[b];
      costs.ways.push_back({recipe_of(b), {}});
      for (std::size_t s = 0; s < branch.stages.size(); ++s)
        costs.ways.back().stages.push_back(curves_of(program, branch, b, s, census.measured[b]));
      costs.room = room_of(program, branch, memory, scenario.cluster.device.memory);
    }
  }
  for (std::size_t b = 0; b < plan.branches.size(); ++b)
    if (auto& costs = plan.branches[b].costs.stages; !costs) costs = std::move(fitted[b]);
}

}  // namespace polyphony
