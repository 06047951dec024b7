#include "shared/verify/verify.h"

#include <algorithm>

#include "shared/verify/verify_checks.h"

namespace polyphony {

std::string where(const Program& program, OpId op) {
  return "rank " + std::to_string(program.rank_of(program.ops[op.value]).value) + " " +
         describe(program, op) + " (op " + std::to_string(op.value) + ")";
}

std::string where(const Program& program, BufferId buffer) {
  const Buffer& value = program.buffers[buffer.value];
  return "rank " + std::to_string(value.rank.value) + " " + name(value.kind) + " buffer " +
         std::to_string(buffer.value);
}

std::string where(const Program& program, ParamGroupId params) {
  const ParamGroup& value = program.params[params.value];
  return "rank " + std::to_string(value.rank.value) + " " +
         program.model.modules[value.module.value].name + "[" + std::to_string(value.layers.begin) +
         "," + std::to_string(value.layers.end) + ")";
}

Order::Order(const Compiled& compiled) : compiled_(compiled), levels_(compiled.nodes.size()) {
  const auto count = static_cast<std::uint32_t>(compiled.nodes.size());
  std::uint32_t deepest = 0;
  for (std::uint32_t node = 0; node < count; ++node) {
    const std::uint32_t depth = levels_[node].depth;
    deepest = std::max(deepest, depth);
    for (auto i = compiled.successor_begin[node]; i < compiled.successor_begin[node + 1]; ++i) {
      std::uint32_t& next = levels_[compiled.successors[i]].depth;
      next = std::max(next, depth + 1);
    }
  }
  for (std::uint32_t node = count; node-- > 0;) {
    std::uint32_t rise = deepest;
    for (auto i = compiled.successor_begin[node]; i < compiled.successor_begin[node + 1]; ++i) {
      rise = std::min(rise, levels_[compiled.successors[i]].rise - 1);
    }
    levels_[node].rise = rise;
  }
}

void Past::add(const Order& order, OpId op) {
  if (last_.valid() && last_ != op) {
    const Moment end = order.end(last_);
    others_ = {std::max(others_.position, end.position), std::max(others_.depth, end.depth),
               std::max(others_.rise, end.rise)};
    has_others_ = true;
  }
  last_ = op;
}

bool Past::before(const Order& order, OpId op) const {
  if (has_others_ && !others_.before(order.start(op))) return false;
  return !last_.valid() || order.before(last_, op);
}

std::vector<Fault> verify(const Program& program, std::size_t limit) {
  Faults faults(limit);
  check_indices(program, faults);
  if (!faults.empty()) return faults.take();
  check_messages(program, faults);
  check_collectives(program, faults);
  const auto compiled = compile(program);
  if (const auto* graph = std::get_if<Compiled>(&compiled)) {
    const Order order(*graph);
    check_buffers(program, order, faults);
    check_gradients(program, &order, faults);
  } else {
    const Fault& cycle = std::get<Fault>(compiled);
    faults.add(cycle.kind, cycle.text);
    check_gradients(program, nullptr, faults);
  }
  check_samples(program, faults);
  return faults.take();
}

}  // namespace polyphony
