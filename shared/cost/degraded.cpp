#include "shared/cost/degraded.h"
#include "shared/text/number_text.h"

#include <algorithm>
#include <string>

namespace polyphony {
namespace {

struct Failed {
  Rank rank;
  bool nic = false, link = false;
};

const char* words(GroupKind kind) {
  constexpr auto kWords =
      names_of<GroupKind>("tensor-parallel", "context-parallel", "expert-parallel", "data-parallel",
                          "data-parallel", "global");
  return kWords[kind];
}

Infeasible refuse(const Failed& failed, bool nic, const std::string& what) {
  std::string text = "the " + std::string(nic ? "NIC" : "node link") + " of rank " +
                     number(failed.rank.value) + " has failed, and " + what + " needs it; ";
  if (nic) return {text + "name the rank whose NIC it uses (\"nic_of\"), or remove its node"};
  return {text + "remove its node"};
}

std::optional<Infeasible> needed_by(const Group& group, const Failed& failed,
                                    const Cluster& cluster) {
  if (!group.members.contains(failed.rank)) return {};
  const std::vector<Rank> members = group.members;
  const auto elsewhere = std::find_if(members.begin(), members.end(), [&](Rank other) {
    return cluster.domain_of(other) != cluster.domain_of(failed.rank) &&
           cluster.node_of(other) != cluster.node_of(failed.rank);
  });
  const auto neighbor = std::find_if(members.begin(), members.end(), [&](Rank other) {
    return other != failed.rank && cluster.domain_of(other) == cluster.domain_of(failed.rank);
  });
  const auto what = [&](Rank other) {
    return std::string("its ") + words(group.kind) + " group with rank " + number(other.value) +
           " (" + std::to_string(members.size()) + " ranks)";
  };
  if (failed.nic && elsewhere != members.end()) return refuse(failed, true, what(*elsewhere));
  if (failed.link && neighbor != members.end()) return refuse(failed, false, what(*neighbor));
  return {};
}

std::optional<Infeasible> needed_by(const Message& message, const Failed& failed,
                                    const Cluster& cluster) {
  const Rank a = message.source, b = message.destination;
  if (a == b || (failed.rank != a && failed.rank != b)) return {};
  const bool one_domain = cluster.domain_of(a) == cluster.domain_of(b);
  const bool one_node = cluster.node_of(a) == cluster.node_of(b);
  const auto what = [&] {
    return "a message from rank " + number(a.value) + " to rank " + number(b.value);
  };
  if (failed.link && one_domain) return refuse(failed, false, what());
  if (failed.nic && !one_domain && !one_node) return refuse(failed, true, what());
  return {};
}

}  // namespace

double slowest_device(const Program& program, const Op& op, const Cluster& cluster) {
  if (cluster.degraded.empty()) return 1;
  const auto factor = [&](Rank rank) {
    const Degraded* degraded = cluster.degraded_at(rank);
    return degraded == nullptr ? 1.0 : degraded->device;
  };
  if (!op.group.valid()) return factor(program.rank_of(op));
  double least = 1;
  for (const Rank member : program.groups[op.group.value].members)
    least = std::min(least, factor(member));
  return least;
}

HardwareProfile slowed(HardwareProfile profile, double factor) {
  Device& device = profile.device;
  device.fp32 = device.fp32 * factor;
  device.bf16 = device.bf16 * factor;
  device.fp8 = device.fp8 * factor;
  device.nvfp4 = device.nvfp4 * factor;
  device.memory_rate = device.memory_rate * factor;
  for (auto& [module, entries] : profile.layer_times)
    for (MeasuredLayers& entry : entries)
      for (MeasuredTime* time : {&entry.forward, &entry.backward_input, &entry.backward_weight})
        for (Seconds* term : {&time->constant, &time->per_token, &time->per_token_squared})
          *term = *term / factor;
  return profile;
}

std::optional<Infeasible> check_links(const Program& program, const Cluster& cluster) {
  for (const Degraded& degraded : cluster.degraded) {
    const Failed failed{Rank(static_cast<std::size_t>(degraded.rank)),
                        degraded.nic == 0 && !degraded.nic_of, degraded.link == 0};
    if (!failed.nic && !failed.link) continue;
    for (const Message& message : program.messages)
      if (auto no = needed_by(message, failed, cluster)) return no;
    for (const bool world : {false, true})  // the group of all ranks last: it is the least specific
      for (const Group& group : program.groups)
        if ((group.kind == GroupKind::world) == world)
          if (auto no = needed_by(group, failed, cluster)) return no;
  }
  return {};
}

}  // namespace polyphony
