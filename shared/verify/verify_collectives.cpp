// Checks collectives: all members of a group run the same collectives in the same order, as ops and
// inside compute ops.
#include <algorithm>

#include "shared/chunk/expand.h"
#include "shared/program/expand_op.h"
#include "shared/verify/verify_checks.h"

namespace polyphony {
namespace {

// The ops of one kind that each group runs: the list of the member visited first, and the position
// of the member visited now.
class GroupLists {
 public:
  explicit GroupLists(std::size_t groups) : lists_(groups) {}

  // Returns the op of the first member at the position that `rank` has reached in `group`; `op`
  // itself if `rank` is the first member; an invalid id if the first member runs fewer ops.
  OpId counterpart(GroupId group, Rank rank, OpId op) {
    List& list = lists_[group.value];
    if (!list.first.valid()) list.first = rank;
    if (list.present != rank) {
      list.present = rank;
      list.reached = 0;
    }
    const std::size_t position = list.reached++;
    ++list.total;
    if (list.first == rank) list.ops.push_back(op);
    return position < list.ops.size() ? list.ops[position] : OpId();
  }
  std::size_t reached(GroupId group) const { return lists_[group.value].reached; }

  void check_lengths(const Program& program, const char* what, Faults& faults) const {
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      const List& list = lists_[i];
      if (list.total == list.ops.size() * program.groups[i].members.size()) continue;
      faults.add(FaultKind::unequal_collectives,
                 "group " + std::to_string(i) + ": its members run different numbers of " + what +
                     " (rank " + std::to_string(list.first.value) + " runs " +
                     std::to_string(list.ops.size()) + ")");
    }
  }

 private:
  struct List {
    Rank first{}, present{};
    std::size_t reached = 0, total = 0;
    std::vector<OpId> ops{};
  };
  std::vector<List> lists_;
};

bool same_params(const Program& program, ParamGroupId a, ParamGroupId b) {
  if (!a.valid() || !b.valid()) return a == b;
  const ParamGroup& one = program.params[a.value];
  const ParamGroup& other = program.params[b.value];
  return one.module == other.module && one.layers == other.layers;
}

void check_collective(const Program& program, GroupLists& lists, Rank rank, OpId op,
                      Faults& faults) {
  const auto& mine = std::get<Collective>(program.ops[op.value].what);
  const OpId other = lists.counterpart(mine.group, rank, op);
  if (mine.sequence + 1 != lists.reached(mine.group)) {
    faults.add(FaultKind::unequal_collectives, where(program, op) + ": its sequence must be " +
                                                   std::to_string(lists.reached(mine.group) - 1) +
                                                   " by the order of its group, got " +
                                                   std::to_string(mine.sequence));
    return;
  }
  if (!other.valid() || other == op) return;  // check_lengths() reports fewer ops
  const auto& theirs = std::get<Collective>(program.ops[other.value].what);
  // The ranks of a tied matrix have different layers.
  const bool tied = mine.purpose == Purpose::tied_gradients;
  if (mine.kind != theirs.kind || mine.purpose != theirs.purpose || mine.bytes != theirs.bytes ||
      !(tied || same_params(program, mine.params, theirs.params))) {
    faults.add(
        FaultKind::unequal_collectives,
        where(program, op) + ": kind, bytes or parameters differ from " + where(program, other));
  }
}

// Returns true if all inputs of expand() that belong to the op are equal.
bool expand_equally(const Compute& a, const Compute& b) {
  return a.module == b.module && a.layers == b.layers && a.phase == b.phase && a.work == b.work &&
         a.recipe == b.recipe;
}

// Returns true if the inner collectives of both ops agree: kinds and groups in the same order, and
// equal bytes where both ranks are members of the same group.
bool agree(const Program& program, const Op& a, const Op& b) {
  const auto& one = std::get<Compute>(a.what);
  const auto& other = std::get<Compute>(b.what);
  const auto expanded = [&](const Compute& what) {
    return expand(program.model.modules[what.module.value], what.layers, what.phase,
                  program.size_of(what.work, what.module), chunk_context(program, what))
        .collectives;
  };
  const auto shares = [&](GroupKind kind) {
    if (!one.params.valid() || !other.params.valid()) return true;
    const ParamGroup& mine = program.params[one.params.value];
    const ParamGroup& theirs = program.params[other.params.value];
    return kind == GroupKind::tensor ? mine.tensor == theirs.tensor
                                     : kind == GroupKind::context && mine.context == theirs.context;
  };
  const std::vector<InnerCollective> mine = expanded(one), theirs = expanded(other);
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                    [&](const InnerCollective& x, const InnerCollective& y) {
                      return x.kind == y.kind && x.group == y.group &&
                             (x.bytes == y.bytes || !shares(x.group));
                    });
}

void check_inner(const Program& program, GroupLists& lists, Rank rank, OpId op, Faults& faults) {
  const Op& mine = program.ops[op.value];
  const OpId other = lists.counterpart(mine.group, rank, op);
  if (!other.valid() || other == op) return;
  const Op& theirs = program.ops[other.value];
  if (expand_equally(std::get<Compute>(mine.what), std::get<Compute>(theirs.what))) return;
  if (!agree(program, mine, theirs)) {
    faults.add(FaultKind::unequal_collectives, where(program, op) +
                                                   ": its inner collectives differ from those of " +
                                                   where(program, other));
  }
}

}  // namespace

void check_collectives(const Program& program, Faults& faults) {
  GroupLists collectives(program.groups.size()), rendezvous(program.groups.size());
  for (std::size_t rank = 0; rank < program.rank_ops.size(); ++rank) {
    const Range range = program.rank_ops[rank];
    for (std::uint32_t op = range.begin; op < range.end; ++op) {
      const Op& value = program.ops[op];
      if (std::holds_alternative<Collective>(value.what)) {
        check_collective(program, collectives, Rank(rank), OpId(op), faults);
      } else if (std::holds_alternative<Compute>(value.what) && value.group.valid()) {
        check_inner(program, rendezvous, Rank(rank), OpId(op), faults);
      }
    }
  }
  collectives.check_lengths(program, "collectives", faults);
  rendezvous.check_lengths(program, "compute ops", faults);
}

}  // namespace polyphony
