// Checks gradients: every trainable parameter group gets the gradient of each microbatch once. The
// gradient is then reduced once over all ranks that share it (replicas, shards, tensor-parallel
// ranks with partial gradients, ranks with a tied matrix), and the group is updated once. Sharded
// gradients are reduce-scattered after every backward pass.
//
// A microbatch contributes by its `backward` or `backward_weight` op over exactly the group's
// layers. If one microbatch of a data-parallel replica runs forward through a group, all
// microbatches of that replica must.
#include <algorithm>
#include <map>
#include <tuple>

#include "shared/chunk/held_sizes.h"
#include "shared/verify/verify_checks.h"

namespace polyphony {
namespace {

using Key = std::tuple<Rank, ModuleId, LayerRange>;

Key key_of(const ParamGroup& params) { return {params.rank, params.module, params.layers}; }

// Finds parameter groups by rank, module and layers.
class ParamIndex {
 public:
  explicit ParamIndex(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.params.size(); ++i) sorted_.push_back(ParamGroupId(i));
    std::sort(sorted_.begin(), sorted_.end(), [&](ParamGroupId a, ParamGroupId b) {
      return std::pair(key(a), a) < std::pair(key(b), b);
    });
  }

  // Returns the group of a chunk, and that of its experts if it has any; empty if there is none.
  std::vector<ParamGroupId> find(Rank rank, const Compute& compute) const {
    std::vector<ParamGroupId> all;
    const Key wanted{rank, compute.module, compute.layers};
    for (auto found = at_or_after(wanted); found != sorted_.end() && key(*found) == wanted; ++found)
      all.push_back(*found);
    return all;
  }
  bool holds_module(Rank rank, ModuleId module) const {
    const auto found = at_or_after({rank, module, {}});
    return found != sorted_.end() && program_.params[found->value].rank == rank &&
           program_.params[found->value].module == module;
  }

 private:
  Key key(ParamGroupId id) const { return key_of(program_.params[id.value]); }
  std::vector<ParamGroupId>::const_iterator at_or_after(const Key& wanted) const {
    return std::lower_bound(sorted_.begin(), sorted_.end(), wanted,
                            [&](ParamGroupId id, const Key& k) { return key(id) < k; });
  }

  const Program& program_;
  std::vector<ParamGroupId> sorted_;
};

// The ops that use the gradient of a parameter group.
struct GradientOps {
  // Number of collectives, by purpose.
  std::uint32_t sums = 0, scatters = 0, partials = 0, ties = 0;
  std::uint32_t contributions = 0, updates = 0;
  Past backwards;
  OpId reduction{}, update{};  // the last one of several
};

// One pass of a microbatch through a parameter group.
struct Pass {
  ParamGroupId params{};
  WorkId work{};
  bool contributes = false;
  auto operator<=>(const Pass&) const = default;
};

class GradientCheck {
 public:
  GradientCheck(const Program& program, const Order* order, Faults& faults)
      : program_(program),
        order_(order),
        faults_(faults),
        index_(program),
        gradient_ops_(program.params.size()) {
    for (std::size_t i = 0; i < program.works.size(); ++i) by_lane_.push_back(WorkId(i));
    std::sort(by_lane_.begin(), by_lane_.end(),
              [&](WorkId a, WorkId b) { return std::pair(lane(a), a) < std::pair(lane(b), b); });
  }

  void run() {
    for (std::size_t rank = 0; rank < program_.rank_ops.size(); ++rank) {
      passes_.clear();
      scalars_ = OpId();
      const Range range = program_.rank_ops[rank];
      for (std::uint32_t op = range.begin; op < range.end; ++op) visit(Rank(rank), OpId(op));
      check_passes();
      if (order_ != nullptr) check_scalars(Rank(rank));
      if (faults_.full()) return;
    }
    for (std::size_t i = 0; i < gradient_ops_.size(); ++i) {
      if (program_.params[i].trainable) check_gradient_ops(ParamGroupId(i));
    }
  }

 private:
  using Lane = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  Lane lane(WorkId work) const {
    const Work& value = program_.works[work.value];
    return {value.branch, value.lane, value.context};
  }

  void visit(Rank rank, OpId id) {
    const Op& op = program_.ops[id.value];
    if (const auto* compute = std::get_if<Compute>(&op.what)) {
      visit_compute(rank, id, *compute);
    } else if (const auto* collective = std::get_if<Collective>(&op.what)) {
      if (!collective->params.valid()) {
        scalars_ = id;
        return;
      }
      visit_collective(id, *collective);
    } else if (const auto* update = std::get_if<Update>(&op.what)) {
      for (std::uint32_t i = update->params.begin; i < update->params.end; ++i) {
        ++gradient_ops_[i].updates;
        gradient_ops_[i].update = id;
      }
    }
  }

  void visit_collective(OpId id, const Collective& collective) {
    GradientOps& ops = gradient_ops_[collective.params.value];
    const ParamGroup& params = program_.params[collective.params.value];
    GroupId wanted;
    switch (collective.purpose) {
      case Purpose::gradients:
        if (collective.kind == CollectiveKind::reduce_scatter) {
          ++ops.scatters;
          wanted = params.shards;
        } else {
          ++ops.sums;
          wanted = params.replicas;
        }
        break;
      case Purpose::partial_gradients:
        ++ops.partials;
        wanted = params.partials;
        break;
      case Purpose::tied_gradients:
        ++ops.ties;
        wanted = params.tied;
        break;
      case Purpose::parameters:
      case Purpose::scalars:
        return;
    }
    ops.reduction = id;
    if (collective.group != wanted) {
      faults_.add(FaultKind::missing_reduction,
                  where(program_, id) + ": " + name(collective.purpose) +
                      " must be reduced over the group that shares them");
    }
  }

  void visit_compute(Rank rank, OpId id, const Compute& compute) {
    const bool contributes =
        compute.phase == Phase::backward || compute.phase == Phase::backward_weight;
    if (!contributes && compute.phase != Phase::forward) return;
    const std::vector<ParamGroupId> groups = index_.find(rank, compute);
    if (groups.empty()) {
      if (contributes && index_.holds_module(rank, compute.module)) {
        faults_.add(FaultKind::lost_gradient,
                    where(program_, id) + ": no parameter group has its layers");
      }
      return;
    }
    for (const ParamGroupId params : groups) {
      if (!program_.params[params.value].trainable) continue;
      passes_.push_back({params, compute.work, contributes});
      if (!contributes) continue;
      ++gradient_ops_[params.value].contributions;
      if (order_ != nullptr) gradient_ops_[params.value].backwards.add(*order_, id);
    }
  }

  // Compares the microbatches of each parameter group with those of the replicas that use the
  // group.
  void check_passes() {
    std::sort(passes_.begin(), passes_.end());
    for (std::size_t begin = 0, end = 0; begin < passes_.size(); begin = end) {
      const ParamGroupId params = passes_[begin].params;
      while (end < passes_.size() && passes_[end].params == params) ++end;
      check_works(params, begin, end);
    }
  }

  void check_works(ParamGroupId params, std::size_t begin, std::size_t end) {
    std::vector<Lane> lanes;
    for (std::size_t i = begin; i < end; ++i) lanes.push_back(lane(passes_[i].work));
    std::sort(lanes.begin(), lanes.end());
    lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
    for (const auto& served : lanes) {
      auto work =
          std::lower_bound(by_lane_.begin(), by_lane_.end(), served,
                           [&](WorkId id, const auto& wanted) { return lane(id) < wanted; });
      for (; work != by_lane_.end() && lane(*work) == served; ++work) {
        const auto first = passes_.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = passes_.begin() + static_cast<std::ptrdiff_t>(end);
        const auto found = std::equal_range(first, last, Pass{params, *work, true});
        report_count(params, *work, found.second - found.first);
      }
    }
  }

  void report_count(ParamGroupId params, WorkId work, std::ptrdiff_t count) {
    if (count == 1) return;
    faults_.add(count == 0 ? FaultKind::lost_gradient : FaultKind::doubled_gradient,
                where(program_, params) + ": microbatch (work) " + std::to_string(work.value) +
                    (count == 0 ? " has no backward" : " has more than one backward"));
  }

  bool before(OpId a, OpId b) const {
    return order_ == nullptr || !a.valid() || !b.valid() || order_->before(a, b);
  }

  bool before(const Past& past, OpId op) const {
    return order_ == nullptr || !op.valid() || past.before(*order_, op);
  }

  // The step scalars contain the squared gradient norm: they are summed after all reductions and
  // before the update.
  void check_scalars(Rank rank) {
    if (!scalars_.valid()) return;
    const Range range = program_.rank_ops[rank.value];
    for (std::uint32_t op = range.begin; op < range.end; ++op) {
      if (const auto* collective = std::get_if<Collective>(&program_.ops[op].what)) {
        if (collective->params.valid() && collective->purpose != Purpose::parameters &&
            !before(OpId(op), scalars_)) {
          faults_.add(FaultKind::early_reduction,
                      where(program_, scalars_) + ": before " + where(program_, OpId(op)));
        }
      } else if (std::holds_alternative<Update>(program_.ops[op].what) &&
                 !before(scalars_, OpId(op))) {
        faults_.add(FaultKind::missing_update,
                    where(program_, OpId(op)) + ": before " + where(program_, scalars_));
      }
    }
  }

  // Also true for replicated parameters that lack a group.
  bool is_replicated(const ParamGroup& params) const {
    if (params.replicas.valid()) return true;
    if (params.shards.valid() || params.experts) return false;
    const std::vector<ModuleLayout>& grids = program_.layout.modules;
    return params.module.value < grids.size() &&
           grids[params.module.value].dp() * grids[params.module.value].cp > 1;
  }
  Shard shard_of(const ParamGroup& params) const {
    const std::vector<ModuleLayout>& grids = program_.layout.modules;
    return params.module.value < grids.size() ? grids[params.module.value].shard : Shard::none;
  }
  // Returns true if the group has gradients that are partial sums. The result is the same for all
  // copies of a chunk at the same position of its tensor-parallel and expert groups.
  bool has_partial_gradients(const ParamGroup& params) {
    if (!params.tensor.valid() || params.elements == 0) return false;
    const ShardIndex& at = params.shard;
    const auto [known, fresh] =
        partial_.try_emplace({params.module, params.layers, params.experts, at.tensor,
                              at.tensor_index, at.expert, at.expert_index});
    if (fresh)
      known->second = partial_gradient_elements(
                          parameters_of(program_.model.modules[params.module.value], params), at,
                          program_.layout.modules[params.module.value].sp) > 0;
    return known->second;
  }

  void check_gradient_ops(ParamGroupId id) {
    const ParamGroup& params = program_.params[id.value];
    const GradientOps& ops = gradient_ops_[id.value];
    const auto report = [&](FaultKind kind, const std::string& text) {
      faults_.add(kind, where(program_, id) + text);
    };
    const auto expect = [&](std::uint32_t count, std::uint32_t wanted, const char* over) {
      if (count < wanted)
        report(FaultKind::missing_reduction,
               std::string(": its gradient is never reduced over its ") + over);
      if (count > wanted)
        report(FaultKind::doubled_reduction,
               std::string(": reduced more than once over its ") + over);
    };
    const bool each_time = params.shards.valid() && shard_of(params) >= Shard::gradients;
    const std::uint32_t times = each_time ? ops.contributions : 1;
    expect(ops.sums, is_replicated(params) ? 1 : 0, "replicas");
    expect(ops.scatters, params.shards.valid() ? times : 0, "shards");
    expect(ops.partials, has_partial_gradients(params) ? times : 0, "tensor-parallel ranks");
    expect(ops.ties, params.tied.valid() ? 1 : 0, "ties");
    if (!before(ops.backwards, ops.reduction)) {
      report(FaultKind::early_reduction, ": reduced before its last backward");
    }
    if (ops.updates == 0) report(FaultKind::missing_update, ": never updated");
    if (ops.updates > 1) report(FaultKind::doubled_update, ": updated more than once");
    if (!before(ops.reduction, ops.update) || !before(ops.backwards, ops.update)) {
      report(FaultKind::missing_update, ": updated before its gradient is complete");
    }
  }

  const Program& program_;
  const Order* order_;
  Faults& faults_;
  ParamIndex index_;
  std::vector<GradientOps> gradient_ops_;
  std::vector<WorkId> by_lane_;
  std::map<std::tuple<ModuleId, LayerRange, bool, int, int, int, int>, bool> partial_;
  std::vector<Pass> passes_;  // of one rank
  OpId scalars_{};            // of one rank
};

}  // namespace

void check_gradients(const Program& program, const Order* order, Faults& faults) {
  GradientCheck(program, order, faults).run();
}

}  // namespace polyphony
