#include "shared/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "shared/chunk/held_sizes.h"
#include "shared/cost/attention_tail.h"
#include "shared/cost/degraded.h"
#include "shared/cost/message_time.h"
#include "shared/cost/overlap.h"
#include "shared/error.h"

namespace polyphony {
namespace {

Bytes scaled(Bytes bytes, double efficiency) {
  return Bytes(
      static_cast<std::int64_t>(std::llround(static_cast<double>(bytes.value) / efficiency)));
}

// Computes the costs of the nodes of one Program. Compute ops of equal shape are computed once.
class Pricer {
 public:
  Pricer(const Program& program, const Compiled& compiled, const Cluster& cluster,
         const HardwareProfile& profile, std::vector<std::uint32_t>& kinds)
      : program_(program),
        compiled_(compiled),
        cluster_(cluster),
        profile_(profile),
        kind_of_(kinds) {
    kind_of_.resize(program.ops.size(), kNoKind);
    for (const std::uint32_t kind : kind_of_)
      if (kind != kNoKind) kinds_ = std::max(kinds_, kind + 1);
  }

  CostTable run() {
    params_of_.resize(program_.ranks);
    rings_.resize(program_.groups.size());
    for (const ParamGroup& params : program_.params)
      if (params_of_[params.rank.value] == nullptr) params_of_[params.rank.value] = &params;
    table_.network = make_network(cluster_, program_.ranks, host_copies());
    table_.nodes.reserve(compiled_.nodes.size());
    for (const Node& node : compiled_.nodes) {
      const auto begin = static_cast<std::uint32_t>(table_.flows.size());
      NodeCost cost = price_node(node);
      cost.flows = {begin, static_cast<std::uint32_t>(table_.flows.size())};
      table_.nodes.push_back(cost);
    }
    wait_for_slowest();
    return std::move(table_);
  }

 private:
  HostCopies host_copies() const {
    if (std::none_of(compiled_.nodes.begin(), compiled_.nodes.end(),
                     [](const Node& node) { return node.kind == NodeKind::copy; }))
      return HostCopies::none;
    const bool folded =
        !program_.only.valid() && std::any_of(program_.rank_ops.begin(), program_.rank_ops.end(),
                                              [](const Range& ops) { return ops.size() == 0; });
    return folded ? HostCopies::folded : HostCopies::all;
  }

  NodeCost price_node(const Node& node) {
    switch (node.kind) {
      case NodeKind::join:
        return {};
      case NodeKind::compute:
        return {.duration = compute(OpId(node.what)), .delay = {}, .flows = {}};
      case NodeKind::message:
        return {.duration = {}, .delay = message(program_.messages[node.what]), .flows = {}};
      case NodeKind::copy:
        return {.duration = {}, .delay = host_copy(program_.ops[node.what]), .flows = {}};
      case NodeKind::collective:
        return {.duration = {}, .delay = collective(program_.ops[node.what]), .flows = {}};
    }
    return {};
  }

  // A compute op that several ranks run together ends when the slowest rank ends. The ranks can
  // have different amounts of work: contexts, and replicas that share experts, have their own
  // microbatches.
  void wait_for_slowest() {
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const auto* mine = std::get_if<Compute>(&program_.ops[i].what);
      if (mine == nullptr || !program_.ops[i].group.valid()) continue;
      const std::uint32_t node = compiled_.op_start[i];
      const auto* first = std::get_if<Compute>(&program_.ops[compiled_.nodes[node].what].what);
      if (first == nullptr || first->work == mine->work) continue;
      Seconds& duration = table_.nodes[node].duration;
      duration = std::max(duration, compute(OpId(i)));
    }
  }

  Seconds compute(OpId id) {
    std::uint32_t& kind = kind_of_[id.value];
    if (kind == kNoKind) kind = find_kind(id);
    if (kind >= times_.size()) times_.resize(kind + 1);
    std::optional<Seconds>& time = times_[kind];
    if (!time) {
      time = compute_time(program_, id, cluster_, profile_);
      if (const auto* compute = std::get_if<Compute>(&program_.ops[id.value].what))
        *time += taken_by_shards(*compute, *time);
    }
    return *time;
  }

  // Returns the number of an op's kind; ops of one kind last equally long.
  std::uint32_t find_kind(OpId id) {
    const Op& op = program_.ops[id.value];
    const auto* compute = std::get_if<Compute>(&op.what);
    if (compute == nullptr) return kinds_++;
    const WorkSize& size = program_.size_of(compute->work, compute->module);
    // All groups of a module have the same size, but some may span several nodes. The groups are
    // therefore part of the key.
    const ChunkGroups groups = groups_of(program_, op, *compute);
    const Key key{compute->module,
                  compute->layers,
                  compute->phase,
                  groups.tensor,
                  groups.context,
                  groups.expert,
                  size,
                  slowest_device(program_, op, cluster_),
                  compute->recipe,
                  has_tail(profile_, program_.model.modules[compute->module.value],
                           program_.layout.modules[compute->module.value])
                      ? compute->work
                      : WorkId()};
    const auto [known, added] = known_.try_emplace(key);
    if (added) known->second = kinds_++;
    return known->second;
  }

  // Returns the time by which collectives of a sharded module delay an op of duration `time`. They
  // belong to the neighboring chunk, which is assumed to be as large as this one: parameters are
  // gathered during every op, gradients are reduce-scattered during backward ops.
  Seconds taken_by_shards(const Compute& compute, Seconds time) const {
    const SoftwareStack& stack = profile_.stack;
    if (std::max(stack.taken_inside, stack.taken_between) <= 0 || !compute.params.valid())
      return {};
    const ParamGroup& params = program_.params[compute.params.value];
    const Shard shard = program_.layout.modules[compute.module.value].shard;
    if (shard < Shard::gradients || !params.shards.valid()) return {};
    const Ring ring =
        make_ring(program_.groups[params.shards.value].members, cluster_, profile_, Others::alike);
    Seconds collectives{};
    if (shard == Shard::full)
      collectives += ring_time(ring, CollectiveKind::all_gather,
                               size_of(program_.precision) * params.elements);
    if (compute.phase != Phase::forward && params.trainable)
      collectives += ring_time(ring, CollectiveKind::reduce_scatter,
                               reduced_bytes(profile_, program_.precision,
                                             gradient_size(program_.precision) * params.trained));
    return overlap(collectives, time, taken_by(stack, ring.nodes)).delayed;
  }

  Seconds message(const Message& message) {
    if (cluster_.free_links) return {};
    if (message.source == message.destination) {  // read and written once
      return 2 * message.bytes / (profile_.device.memory_rate * profile_.memory_efficiency);
    }
    const double efficiency =
        message_efficiency(cluster_, profile_, message.source, message.destination);
    const Gather gather = gather_of(message);
    table_.flows.push_back(
        {message.source, message.destination, scaled(message.bytes, efficiency * gather.parts)});
    return message_delay(cluster_, profile_, message.source, message.destination) + gather.time;
  }

  Seconds host_copy(const Op& op) {
    if (cluster_.free_links) return {};
    const auto& copy = std::get<HostCopy>(op.what);
    const Rank rank = program_.rank_of(op), host = table_.network.host(rank);
    table_.flows.push_back({copy.to_host ? rank : host, copy.to_host ? host : rank,
                            scaled(copy.bytes, profile_.host_efficiency)});
    return profile_.host_latency + cluster_.host_link.latency;
  }

  // The gather of rows that are sent as one of `parts` messages.
  struct Gather {
    int parts = 1;
    Seconds time{};
  };
  Gather gather_of(const Message& message) const {
    if (!profile_.stack.scattered_messages) return {};
    const ParamGroup* to = params_of_[message.destination.value];
    if (program_.layout.placement != Placement::homogeneous || to == nullptr ||
        !to->tensor.valid() || program_.layout.modules[to->module.value].sp)
      return {};
    const Ring ring =
        make_ring(program_.groups[to->tensor.value].members, cluster_, profile_, Others::alike);
    return {ring.ranks, ring_time(ring, CollectiveKind::all_gather, message.bytes)};
  }

  Seconds collective(const Op& op) {
    const Collective& collective = std::get<Collective>(op.what);
    const GroupRing& group = ring_of(collective.group);
    const auto n = program_.groups[collective.group.value].members.size();
    if (n < 2 || cluster_.free_links) return Seconds(0);
    const bool folded = group.folded;
    const Ring& ring = group.ring;
    const Bytes whole = collective_bytes(collective);
    const Seconds time = ring_time(ring, collective.kind, whole);
    const Tail tail = exposed_tail(collective, time, ring.nodes);
    if (folded) return tail.share * time + tail.delayed;
    const std::vector<Rank>& members = group.members;
    const Protocol protocol = choose_protocol(ring, collective.kind, whole);
    const Bytes bytes = ring_bytes(collective.kind, static_cast<int>(n), whole);
    const double shown = protocol.share / tail.share;
    for (std::size_t i = 0; i < n; ++i) {
      const Rank from = members[i], to = members[(i + 1) % n];
      if (!table_.network.over_fabric(from, to)) {
        const double links = table_.network.same_node(from, to) ? ring.links : 1;
        table_.flows.push_back(
            {from, to, scaled(bytes, profile_.collective_efficiency * links * shown)});
      } else if (cluster_.leaf.nodes > 0) {
        const Bytes one = scaled(bytes, profile_.fabric_efficiency * ring.channels * shown);
        for (const auto& [a, b] : channels_between(members, i, cluster_))
          table_.flows.push_back({a, b, one});
      } else {
        const double rings = std::max(1.0, ring.channels);
        table_.flows.push_back(
            {from, to, scaled(bytes, profile_.fabric_efficiency * rings * shown)});
      }
    }
    return tail.share * protocol.latency + tail.delayed;
  }

  // The ring of a group's collectives. folded: some members have no ops in the Program; other
  // groups run the same collective at the same time.
  struct GroupRing {
    bool folded = false;
    Ring ring;
    std::vector<Rank> members;  // unfolded
  };
  const GroupRing& ring_of(GroupId id) {
    std::optional<GroupRing>& known = rings_[id.value];
    if (known) return *known;
    std::vector<Rank> members = program_.groups[id.value].members;
    const bool folded = std::any_of(members.begin(), members.end(), [&](Rank rank) {
      return program_.rank_ops[rank.value].size() == 0;
    });
    const Others others = folded ? Others::alike : Others::idle;
    known = GroupRing{folded, make_ring(members, cluster_, profile_, others), {}};
    if (!folded) known->members = std::move(members);
    return *known;
  }

  // The exposed part of a collective at the end of the step. Overlapping compute hides the rest:
  // for gradients the last backward pass of the parameters, for parameters the first forward pass
  // of the next step. The last bucket is never hidden.
  struct Tail {
    double share = 1;   // exposed fraction of the collective
    Seconds delayed{};  // time by which it delays the compute that hides it
  };
  Tail exposed_tail(const Collective& collective, Seconds time, int nodes) {
    constexpr double kLastBucket = 0.1;
    if (profile_.stack.overlap <= 0 || !collective.params.valid() || time.count() <= 0) return {};
    const ParamGroup& params = program_.params[collective.params.value];
    if (program_.layout.modules[params.module.value].shard >= Shard::gradients) return {};
    const bool gradients = collective.purpose == Purpose::gradients;
    if (!gradients && collective.purpose != Purpose::parameters) return {};
    Seconds hiding{};
    const Range range = program_.rank_ops[params.rank.value];
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      const auto* compute_op = std::get_if<Compute>(&program_.ops[i].what);
      if (compute_op == nullptr || compute_op->module != params.module ||
          compute_op->layers != params.layers)
        continue;
      const bool forward = compute_op->phase == Phase::forward;
      if (forward == gradients) continue;
      hiding = compute(OpId(i));
      if (!gradients) break;
    }
    const Overlap both =
        overlap(time, profile_.stack.overlap * hiding, taken_by(profile_.stack, nodes));
    return {std::clamp(both.exposed / time, kLastBucket, 1.0), both.delayed};
  }

  Bytes collective_bytes(const Collective& collective) const {
    if (collective.purpose != Purpose::gradients) return collective.bytes;
    return reduced_bytes(profile_, program_.precision, collective.bytes);
  }

  using Key = std::tuple<ModuleId, LayerRange, Phase, GroupId, GroupId, GroupId, WorkSize, double,
                         Recipe, WorkId>;
  const Program& program_;
  const Compiled& compiled_;
  const Cluster& cluster_;
  const HardwareProfile& profile_;
  CostTable table_;
  std::vector<const ParamGroup*> params_of_;  // by rank: the parameters of its first chunk, or null
  static constexpr std::uint32_t kNoKind = 0xFFFFFFFF;
  std::vector<std::uint32_t>& kind_of_;  // by op
  std::map<Key, std::uint32_t> known_;   // kinds found by this pricing
  std::uint32_t kinds_ = 0;
  std::vector<std::optional<Seconds>> times_;    // by kind
  std::vector<std::optional<GroupRing>> rings_;  // by group
};

}  // namespace

Bytes reduced_bytes(const HardwareProfile& profile, NumberFormat precision, Bytes gradients) {
  if (profile.stack.gradient_bytes <= 0) return gradients;
  return scaled(gradients,
                static_cast<double>(gradient_size(precision).value) / profile.stack.gradient_bytes);
}

CostTable price(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const HardwareProfile& profile) {
  return Pricing(program, compiled, cluster).price(profile);
}

CostTable Pricing::price(const HardwareProfile& profile) {
  POLYPHONY_CHECK(
      static_cast<int>(program_.ranks) <= cluster_.ranks(),
      "the Program has " << program_.ranks << " ranks, the cluster has " << cluster_.ranks());
  return Pricer(program_, compiled_, cluster_, profile, kinds_).run();
}

}  // namespace polyphony
