#include "sim/prediction/need.h"

#include <algorithm>

#include "shared/plan/links.h"
#include "shared/step/step_plan.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

// Measured: the largest proportional set size of process and child, for decoders on 8 to 65,536
// ranks with 1 to 8,192 microbatches and no to full sharding. Results: 350 to 700 bytes per op for
// an unfolded prediction, and 1,100 in the longest pipeline of need_test.cpp. A simulation needs
// another 7 KB per rank (SimGrid's hosts, links and flows in flight).
constexpr double kBytesPerOp = 650, kBytesOfTrace = 300, kPlayedPerOp = 45, kPlayedPerRank = 7000;
constexpr double kBytesPerSample = 220, kProgram = 12e6;
// Positions in a Program have 32 bits, and an op has up to eight waits or uses of buffers.
constexpr double kMostProgramOps = 4294967295.0 / 8;

// Returns the number of actions per microbatch and stage: a forward and a backward (2), or a
// forward and the two parts of a split backward (3).
double actions_per_work(const Layout& layout) {
  if (layout.actions.empty()) return schedule(layout.schedule).splits_backward ? 3 : 2;
  const Actions& own = layout.actions.front();
  const bool splits = std::any_of(own.begin(), own.end(), [](const Action& action) {
    return action.kind == ActionKind::backward_weight;
  });
  return splits ? 3 : 2;
}

double ops_of(const Branch& branch, double actions) {
  const double ranks = branch.stage_ranks();
  const bool divided = branch.stage_ranks() > branch.grid.tp;  // several ranks share parameters
  double ops = 0;
  for (const Stage& stage : branch.stages) {
    const auto chunks = static_cast<double>(stage.chunks.size());
    double each = actions * branch.microbatches * chunks;
    // At the end of the step: reduction of gradients, and gathering of sharded parameters.
    const double of_params = 2 * chunks;
    if (divided && branch.grid.shard == Shard::full) each += 3 * branch.microbatches * chunks;
    if (divided && branch.grid.shard == Shard::gradients) each += branch.microbatches * chunks;
    ops += ranks * (each + of_params);
  }
  return ops;
}

}  // namespace

Need need_of(const Scenario& scenario, const Layout& layout, const NeedOptions& options) {
  return need_of(scenario, make_plan(scenario, layout), layout, options);
}

Need need_of(const Scenario& scenario, const Plan& plan, const Layout& layout,
             const NeedOptions& options) {
  const double actions = actions_per_work(layout);
  Need need;
  double ranks = 0;
  for (const Branch& branch : plan.branches) {
    need.ops += ops_of(branch, actions);
    ranks += branch.grid.ranks;
  }
  for (const ChunkLink& link : make_links(scenario.model, plan)) {
    if (link.local) continue;
    for (const ChunkPlace& end : {link.producer, link.consumer}) {
      const Branch& branch = plan.branches[end.branch];
      need.ops += 2.0 * branch.microbatches * branch.stage_ranks();
    }
  }
  constexpr double kTail = 3;  // two reductions of scalars, one optimizer update
  need.ops += kTail * ranks;
  const double held = need.ops / options.lanes;
  double bytes = held * (kBytesPerOp + (options.trace ? kBytesOfTrace : 0)) +
                 static_cast<double>(scenario.data.global_batch) * kBytesPerSample + kProgram;
  if (options.predictor == Predictor::simulate)
    bytes += held * kPlayedPerOp + ranks * kPlayedPerRank;
  need.bytes = Bytes(static_cast<std::int64_t>(bytes * options.copies));
  return need;
}

namespace {

std::optional<Infeasible> check(const Scenario& scenario, const Plan& plan, const Layout& layout,
                                const NeedOptions& options, Bytes memory) {
  const Need need = need_of(scenario, plan, layout, options);
  const bool countable = need.ops / options.lanes < kMostProgramOps;
  if (countable && (memory.value <= 0 || need.bytes <= memory)) return {};
  std::string text =
      "the prediction needs about " + bytes_text(need.bytes) + " of memory (" +
      count_text(static_cast<std::int64_t>(need.ops)) + " ops" +
      (options.lanes > 1 ? ", one replica of " + std::to_string(options.lanes) : "") +
      (options.copies > 1 ? ", " + std::to_string(options.copies) + " at a time" : "") + "), ";
  text += countable ? "but this machine has only " + bytes_text(memory) + " free"
                    : "which is more ops than a Program can contain";
  std::string less = "memory is proportional to ranks and microbatches";
  const auto offer = [&](NeedOptions other, const std::string& how) {
    const Need smaller = need_of(scenario, plan, layout, other);
    if (countable && smaller.bytes <= memory)
      less = how + " needs about " + bytes_text(smaller.bytes) + "; " + less;
  };
  if (options.copies > 1) {
    NeedOptions alone = options;
    alone.copies = 1;
    offer(alone, "--jobs 1");
  } else if (options.trace) {
    NeedOptions other = options;
    other.trace = false;
    offer(other, "without --trace it");
  } else if (options.predictor == Predictor::simulate) {
    NeedOptions other = options;
    other.predictor = Predictor::estimate;
    offer(other, "--estimate");
  }
  return Infeasible{text + " (" + less + ")"};
}

}  // namespace

std::optional<Infeasible> check_need(const Scenario& scenario, const Layout& layout,
                                     const NeedOptions& options, Bytes memory) {
  return check(scenario, make_plan(scenario, layout), layout, options, memory);
}

std::optional<Infeasible> check_need(const PlannedLayout& planned, const NeedOptions& options,
                                     Bytes memory) {
  return check(planned.scenario(), planned.plan, planned.layout, options, memory);
}

}  // namespace polyphony::sim
