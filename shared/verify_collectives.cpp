// Collectives: all members of a group run the same list, in the same order; so do the collectives
// inside its compute ops.
#include <algorithm>

#include "shared/expand.h"
#include "shared/verify_checks.h"

namespace polyphony {
namespace {

// The ops of one kind that each group runs: the list of the member seen first, and how far the
// present rank has come in it.
class GroupLists {
 public:
  explicit GroupLists(std::size_t groups) : lists_(groups) {}

  // The op of the first member at the position that `rank` has reached in `group`; `op` itself when
  // this is the first member, and an invalid id when the first member runs fewer.
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
    faults.add(FaultKind::unequal_collectives,
               where(program, op) + ": has sequence " + std::to_string(mine.sequence) +
                   ", its group's order gives " + std::to_string(lists.reached(mine.group) - 1));
    return;
  }
  if (!other.valid() || other == op) return;  // check_lengths() tells of the former
  const auto& theirs = std::get<Collective>(program.ops[other.value].what);
  if (mine.kind != theirs.kind || mine.bytes != theirs.bytes ||
      !same_params(program, mine.params, theirs.params)) {
    faults.add(
        FaultKind::unequal_collectives,
        where(program, op) + ": kind, bytes or parameters differ from " + where(program, other));
  }
}

void check_inner(const Program& program, GroupLists& lists, Rank rank, OpId op, Faults& faults) {
  const Op& mine = program.ops[op.value];
  const OpId other = lists.counterpart(mine.group, rank, op);
  if (!other.valid() || other == op) return;
  const Op& theirs = program.ops[other.value];
  if (mine.what == theirs.what) return;  // equal ops expand equally
  if (expand(program, op).collectives != expand(program, other).collectives) {
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
