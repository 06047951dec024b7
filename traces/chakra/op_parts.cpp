#include "traces/chakra/op_parts.h"

#include <algorithm>

#include "shared/cost/compute_time.h"
#include "shared/cost/update_bytes.h"
#include "shared/error.h"
#include "shared/program/expand_op.h"
#include "traces/compare/activity.h"

namespace polyphony::traces {
namespace {

Cluster with_free_links(Cluster cluster) {
  cluster.free_links = true;
  return cluster;
}

GroupId member(const ChunkGroups& groups, GroupKind kind) {
  return kind == GroupKind::context  ? groups.context
         : kind == GroupKind::expert ? groups.expert
                                     : groups.tensor;
}

}  // namespace

OpCutter::OpCutter(const Program& program, const Cluster& cluster, const HardwareProfile& profile)
    : program_(program),
      cluster_(cluster),
      free_(with_free_links(cluster)),
      profile_(profile),
      sets_(rendezvous_sets(program)) {}

const OpParts& OpCutter::of(OpId id) {
  const OpId first(sets_[id.value]);
  const Op& op = program_.ops[first.value];
  const auto* compute = std::get_if<Compute>(&op.what);
  if (compute == nullptr) {
    const auto [update, added] = updates_.try_emplace(first);
    if (added) update->second.bytes = moved_by_update(program_, std::get<Update>(op.what));
    return update->second;
  }
  const ChunkGroups groups = groups_of(program_, op, *compute);
  const Key key{compute->module,
                compute->layers,
                compute->phase,
                compute->recipe,
                program_.size_of(compute->work, compute->module),
                groups.tensor,
                groups.context,
                groups.expert};
  const auto [known, added] = known_.try_emplace(key);
  if (added) known->second = cut(first);
  return known->second;
}

GroupId OpCutter::group_of(OpId id, GroupKind kind) const {
  const Op& op = program_.ops[id.value];
  return member(groups_of(program_, op, std::get<Compute>(op.what)), kind);
}

OpParts OpCutter::cut(OpId id) const {
  const Op& op = program_.ops[id.value];
  const ChunkGroups groups = groups_of(program_, op, std::get<Compute>(op.what));
  const Expansion inside = expand(program_, id);
  OpParts parts;
  parts.flops = total_flops(inside);
  for (const Kernel& kernel : inside.kernels) parts.bytes += kernel.bytes;
  Seconds alone{};
  for (const InnerCollective& call : inside.collectives) {
    const GroupId group = member(groups, call.group);
    if (!group.valid() || program_.groups[group.value].members.size() < 2) continue;
    const Ring ring =
        make_ring(program_.groups[group.value].members, cluster_, profile_, Others::alike);
    const Seconds time = ring_time(ring, call.kind, call.bytes);
    alone += time;
    parts.calls.push_back({call.kind, call.group, call.bytes, time.count()});
  }
  const Seconds whole = compute_time(program_, id, cluster_, profile_);
  const Seconds shown = whole - compute_time(program_, id, free_, profile_);
  const double scale = alone > Seconds(0) && whole > Seconds(0)
                           ? std::clamp(shown / whole, 0.0, 1.0) / alone.count()
                           : 0;
  for (InnerCall& call : parts.calls) call.share *= scale;
  return parts;
}

}  // namespace polyphony::traces
