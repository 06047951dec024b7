// Divides a compute op into the parts that other simulators' graphs need: compute chunks with the
// collectives between them.
//
// The cost model divides the op's time. The time that exceeds the time of the same op on free links
// goes to its collectives, each by its closed form. The remaining time, the floating-point
// operations and the bytes are divided into equal chunks, one before each collective (an Expansion
// does not state where among the kernels a collective runs).
//
// Ops that run together are divided like the first of them, so that their collectives match. The
// measured time of a layer already contains its collectives: they get no time of their own.
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
  Bytes bytes{};     // as in InnerCollective
  double share = 0;  // of the op's time
};
struct OpParts {
  Flops flops{};
  Bytes bytes{};  // read and written
  std::vector<InnerCall> calls;
};

class OpCutter {
 public:
  // Keeps references to all arguments.
  OpCutter(const Program& program, const Cluster& cluster, const HardwareProfile& profile);
  // Returns the parts of a compute op or an update.
  const OpParts& of(OpId op);
  // Returns the group over which an inner collective of the op runs.
  GroupId group_of(OpId op, GroupKind kind) const;

 private:
  OpParts cut(OpId op) const;

  using Key = std::tuple<ModuleId, LayerRange, Phase, Recipe, WorkSize, GroupId, GroupId, GroupId>;
  const Program& program_;
  const Cluster& cluster_;
  Cluster free_;  // the same cluster with links that cost nothing
  const HardwareProfile& profile_;
  std::vector<std::uint32_t> sets_;  // rendezvous_sets() of traces/compare/activity.h
  std::map<Key, OpParts> known_;
  std::map<OpId, OpParts> updates_;
};

}  // namespace polyphony::traces
