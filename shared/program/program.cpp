#include "shared/program/program.h"

namespace polyphony {
namespace {

const char* short_name(Phase phase) {
  constexpr auto kShort = names_of<Phase>("F", "B", "Bi", "Bw", "R");
  return kShort[phase];
}

std::string describe_chunk(const Program& program, ModuleId module, LayerRange layers) {
  return program.model.modules[module.value].name + "[" + std::to_string(layers.begin) + "," +
         std::to_string(layers.end) + ")";
}

struct Describer {
  const Program& program;

  std::string operator()(const Compute& compute) const {
    return std::string(short_name(compute.phase)) + " " +
           describe_chunk(program, compute.module, compute.layers) + " work " +
           std::to_string(compute.work.value);
  }

  std::string operator()(const Exchange& exchange) const {
    const std::string count = std::to_string(exchange.messages.size());
    std::string text = exchange.sends ? "send " : "receive ";
    text += count + (exchange.messages.size() == 1 ? " message" : " messages");
    if (exchange.messages.size() == 0) return text;
    const Rank first = peer(exchange, exchange.messages.begin);
    for (std::uint32_t i = exchange.messages.begin; i < exchange.messages.end; ++i) {
      if (peer(exchange, i) != first) return text;
    }
    return text + (exchange.sends ? " to rank " : " from rank ") + std::to_string(first.value);
  }

  std::string operator()(const Collective& collective) const {
    const std::string text = std::string(name(collective.kind)) + " ";
    if (!collective.params.valid()) return text + "step scalars";
    const ParamGroup& params = program.params[collective.params.value];
    return text + describe_chunk(program, params.module, params.layers);
  }

  std::string operator()(const Update&) const { return "update"; }

  std::string operator()(const HostCopy& copy) const {
    return std::string(copy.to_host ? "offload " : "fetch ") +
           describe_chunk(program, copy.module, copy.layers) + " work " +
           std::to_string(copy.work.value);
  }

  Rank peer(const Exchange& exchange, std::uint32_t i) const {
    const Message& message = program.messages[program.exchange_messages[i].value];
    return exchange.sends ? message.destination : message.source;
  }
};

}  // namespace

std::string describe(const Program& program, OpId op) {
  return std::visit(Describer{program}, program.ops[op.value].what);
}

std::vector<Parameter> parameters_of(const Module& module, const ParamGroup& group) {
  std::vector<Parameter> list = parameters(module, group.layers);
  std::erase_if(list, [&](const Parameter& p) { return p.expert != group.experts; });
  return list;
}

}  // namespace polyphony
