#include "traces/replay/activity_class.h"
#include "shared/text/number_text.h"

#include "shared/error.h"

namespace polyphony::traces {
namespace {

std::string chunk(const Program& program, ModuleId module, LayerRange layers) {
  return program.model.modules[module.value].name + "[" + number(layers.begin) + "," +
         number(layers.end) + ")";
}

std::string of_message(const Program& program, const Message& message) {
  if (message.source == message.destination) return "hand-overs";
  const bool backward = program.buffers[message.from.value].kind == BufferKind::boundary_gradient;
  return backward ? "messages backward" : "messages forward";
}

std::string of_collective(const Collective& collective) {
  const Purpose purpose = collective.params.valid() ? collective.purpose : Purpose::scalars;
  return std::string(name(purpose)) + " " + name(collective.kind);
}

std::vector<std::string> compute_keys(const Program& program, const Compute& compute, Rank rank) {
  const std::string what =
      std::string(name(compute.phase)) + " " + chunk(program, compute.module, compute.layers);
  return {what + " on " + number(rank.value), what};
}

std::vector<std::string> message_keys(const Program& program, const Message& message,
                                      const Network& network) {
  const std::string kind = of_message(program, message);
  if (message.source == message.destination)
    return {kind + " on " + number(message.source.value), kind};
  const std::string way =
      " way " + number(static_cast<int>(network.way(message.source, message.destination)));
  return {kind + " " + number(message.source.value) + ">" + number(message.destination.value) + way,
          kind + way, "messages" + way};
}

std::vector<std::string> collective_keys(const Program& program, const Collective& collective,
                                         const Network& network) {
  const RankList& members = program.groups[collective.group.value].members;
  const std::vector<Rank> ranks = members;
  bool over_fabric = false;
  for (const Rank rank : ranks) over_fabric |= network.over_fabric(ranks.front(), rank);
  const std::string kind = of_collective(collective);
  const std::string way = over_fabric ? " over nodes" : " in a node";
  std::string of;
  if (collective.params.valid()) {
    const ParamGroup& params = program.params[collective.params.value];
    of = " of " + chunk(program, params.module, params.layers) + (params.experts ? " experts" : "");
  }
  const std::string size = " over " + number(static_cast<std::int64_t>(ranks.size()));
  const std::string whole = kind + of + size + way;
  std::vector<std::string> keys{whole + " from " + number(ranks.front().value), whole};
  if (ranks.size() > 1) keys.insert(keys.end(), {kind + size + way, kind + way});
  return keys;  // a collective of one rank moves nothing, and is not representative of others
}

}  // namespace

std::string class_label(const Program& program, const Op& op) {
  if (const auto* compute = std::get_if<Compute>(&op.what))
    return program.model.modules[compute->module.value].name + " " + name(compute->phase);
  if (const auto* collective = std::get_if<Collective>(&op.what)) return of_collective(*collective);
  if (const auto* exchange = std::get_if<Exchange>(&op.what)) {
    if (exchange->messages.size() == 0) return "messages forward";
    const MessageId first = program.exchange_messages[exchange->messages.begin];
    return of_message(program, program.messages[first.value]);
  }
  if (const auto* copy = std::get_if<HostCopy>(&op.what))
    return program.model.modules[copy->module.value].name +
           (copy->to_host ? " to the host" : " from the host");
  return "update";
}

ActivityClass class_of(const Program& program, const Compiled& compiled, std::uint32_t node,
                       const Network& network) {
  const Node& what = compiled.nodes[node];
  if (what.kind == NodeKind::message) {
    const Message& message = program.messages[what.what];
    return {of_message(program, message), message_keys(program, message, network)};
  }
  POLYPHONY_CHECK(what.kind != NodeKind::join, "a join is not an activity");
  const Op& op = program.ops[what.what];
  ActivityClass result{class_label(program, op), {}};
  if (const auto* compute = std::get_if<Compute>(&op.what)) {
    result.keys = compute_keys(program, *compute, program.rank_of(op));
  } else if (const auto* collective = std::get_if<Collective>(&op.what)) {
    result.keys = collective_keys(program, *collective, network);
  } else if (std::holds_alternative<HostCopy>(op.what)) {
    result.keys = {result.label + " on " + number(program.rank_of(op).value), result.label};
  } else {
    result.keys = {"update on " + number(program.rank_of(op).value), "update"};
  }
  return result;
}

}  // namespace polyphony::traces
