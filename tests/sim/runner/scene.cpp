#include "tests/sim/runner/scene.h"

#include <string>
#include <utility>

namespace polyphony::tests {

Scene::Scene(std::vector<std::uint32_t> node_of)
    : builder_(static_cast<std::uint32_t>(node_of.size())), node_of_(std::move(node_of)) {
  Module module;
  module.name = "language";
  module.layers = 1;
  builder_.program.model.modules.push_back(module);
  builder_.program.works.emplace_back();
  builder_.program.sizes.emplace_back();
}

Draft Scene::compute(std::uint32_t rank, Seconds time, std::vector<Draft> waits) {
  times_.push_back(time);
  return builder_.compute(builder_.stream(Rank(rank), StreamKind::compute, "compute"),
                          {ModuleId(0), {0, 1}, Phase::forward, WorkId(0)}, GroupId(),
                          std::move(waits), {});
}

MessageId Scene::message(std::uint32_t from, std::uint32_t to, Bytes bytes) {
  const std::int64_t rows = bytes.value / 4;
  const BufferId a = builder_.buffer(Rank(from), BufferKind::boundary, rows, 1);
  const BufferId b = builder_.buffer(Rank(to), BufferKind::boundary, rows, 1);
  return builder_.message(a, 0, b, 0, rows);
}

Draft Scene::send(std::uint32_t rank, const std::vector<MessageId>& messages,
                  std::vector<Draft> waits) {
  return exchange(rank, true, messages, std::move(waits));
}

Draft Scene::receive(std::uint32_t rank, const std::vector<MessageId>& messages,
                     std::vector<Draft> waits) {
  return exchange(rank, false, messages, std::move(waits));
}

Draft Scene::exchange(std::uint32_t rank, bool sends, const std::vector<MessageId>& messages,
                      std::vector<Draft> waits) {
  times_.push_back(Seconds(0));
  const StreamId stream =
      builder_.stream(Rank(rank), sends ? StreamKind::send : StreamKind::receive,
                      "exchange " + std::to_string(builder_.count()));
  return builder_.exchange(stream, sends, messages, std::move(waits), {});
}

void Scene::build() {
  if (program_) return;
  for (std::uint32_t r = 0; r < builder_.program.ranks; ++r) {
    const std::vector<Draft>& drafts = builder_.of_rank(Rank(r));
    added_.insert(added_.end(), drafts.begin(), drafts.end());
  }
  program_ = builder_.finish();
  compiled_ = std::get<Compiled>(compile(*program_));
  costs_.network = {node_of_, kNodeRate, kFabricRate};
  for (const Node& node : compiled_.nodes) {
    NodeCost cost;
    if (node.kind == NodeKind::compute) cost.duration = times_[added_[node.what]];
    if (node.kind == NodeKind::message) {
      const Message& message = program_->messages[node.what];
      const auto at = static_cast<std::uint32_t>(costs_.flows.size());
      costs_.flows.push_back({message.source, message.destination, message.bytes});
      cost.delay = delay_;
      cost.flows = {at, at + 1};
    }
    costs_.nodes.push_back(cost);
  }
}

CostTable& Scene::costs() {
  build();
  return costs_;
}

std::variant<sim::Playback, Infeasible> Scene::attempt() {
  build();
  return sim::play(*program_, compiled_, costs_);
}

sim::Playback Scene::play() { return std::get<sim::Playback>(attempt()); }

std::vector<OpTime> Scene::run() {
  const Timeline timeline = play().timeline;
  std::vector<OpTime> result(timeline.ops.size());
  for (std::size_t op = 0; op < added_.size(); ++op) result[added_[op]] = timeline.ops[op];
  return result;
}

}  // namespace polyphony::tests
