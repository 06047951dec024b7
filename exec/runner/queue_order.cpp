#include "exec/runner/queue_order.h"

#include <map>

#include "shared/error.h"

namespace polyphony::exec {

QueueOrder::QueueOrder(const Program& program, Rank rank)
    : first_(program.ops_of(rank).begin),
      missing_(program.ops_of(rank).size()),
      after_(missing_.size()),
      computes_(missing_.size()),
      left_(missing_.size()) {
  const Range own = program.ops_of(rank);
  std::map<std::uint32_t, Local> last;     // by stream
  std::map<MessageId, Local> sent, taken;  // by message from the rank to itself
  for (std::uint32_t id = own.begin; id < own.end; ++id) {
    const Op& op = program.ops[id];
    const Local here = id - first_;
    computes_[here] = program.streams[op.stream.value].kind == StreamKind::compute;
    for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w)
      behind(program.waits[w].value - first_, here);
    const auto [entry, new_stream] = last.try_emplace(op.stream.value, here);
    if (!new_stream) behind(std::exchange(entry->second, here), here);
    const auto* what = std::get_if<Exchange>(&op.what);
    if (what == nullptr) continue;
    for (std::uint32_t m = what->messages.begin; m < what->messages.end; ++m) {
      const MessageId message = program.exchange_messages[m];
      const Message& ends = program.messages[message.value];
      if (ends.source == ends.destination) (what->sends ? sent : taken)[message] = here;
    }
  }
  for (const auto& [message, receive] : taken) behind(sent.at(message), receive);
  for (Local op = 0; op < missing_.size(); ++op)
    if (missing_[op] == 0) ready(op);
}

void QueueOrder::behind(Local before, Local after) {
  after_[before].push_back(after);
  ++missing_[after];
}

std::optional<OpId> QueueOrder::next() {
  First& list = others_.empty() ? compute_ : others_;
  POLYPHONY_CHECK(!list.empty() || left_ == 0,
                  left_ << " ops of a rank wait for each other (deadlock)");
  if (list.empty()) return {};
  const Local op = list.top();
  list.pop();
  --left_;
  for (const Local next : after_[op])
    if (--missing_[next] == 0) ready(next);
  return OpId(first_ + op);
}

}  // namespace polyphony::exec
