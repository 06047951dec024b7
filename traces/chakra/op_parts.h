// A compute op as others' graphs have it: pieces of computation with the collectives between them.
//   The op's time is shared out as the cost model has it: what the op takes beyond the same op on links that cost nothing goes to
//   its collectives, each by its own closed form; the rest, floating-point operations and bytes in equal pieces, one
//   before each collective (where among the kernels a collective stands an Expansion does not say).
// Ops that run together are cut as the first of them, so that their collectives meet. Of a layer with
// measured times the collectives are inside them: they get no time of their own.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony::traces {

struct InnerCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupKind over = GroupKind::tensor;
  Bytes bytes{};     // as InnerCollective's
  double share = 0;  // of the op's time
};
struct OpParts {
  Flops flops{};
  Bytes bytes{};  // read and written
  std::vector<InnerCall> calls;
};

class OpCutter {
 public:
  // All are kept by reference.
  OpCutter(const Program& program, const Cluster& cluster, const HardwareProfile& profile);
  // Of a compute op or an update.
  const OpParts& of(OpId op);
  // Whom a collective inside the op runs over.
  GroupId group_of(OpId op, GroupKind kind) const;

 private:
  OpParts cut(OpId op) const;

  using Key = std::tuple<ModuleId, LayerRange, Phase, Recipe, WorkSize, GroupId, GroupId, GroupId>;
  const Program& program_;
  const Cluster& cluster_;
  Cluster free_;  // the same, its links free
  const HardwareProfile& profile_;
  std::vector<std::uint32_t> sets_;  // traces/compare/activity.h
  std::map<Key, OpParts> known_;
  std::map<OpId, OpParts> updates_;
};

}  // namespace polyphony::traces
