#include "tests/exec/device_double/slots.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "shared/program/expand_op.h"
#include "shared/program/message_order.h"
#include "tests/exec/device_double/board.h"

namespace polyphony::exec::testing {

int slots_held(torch::Device device) {
  const std::scoped_lock lock(queued::board().mutex);
  return static_cast<int>(queued::board().holders[device.index()].size());
}

int most_kernels_at_a_time(const Program& program) {
  const MessageChannels channels(program, !out_of_order(program, false).empty());
  std::map<std::uint32_t, int> by_stream;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    int kernels = 0;
    if (const auto* exchange = std::get_if<Exchange>(&op.what)) {
      std::set<std::pair<std::string, std::uint32_t>> groups;
      for (std::uint32_t m = exchange->messages.begin; m < exchange->messages.end; ++m) {
        const MessageId id = program.exchange_messages[m];
        const Message& message = program.messages[id.value];
        if (message.source != message.destination)
          groups.emplace(channels.name(op, id),
                         (exchange->sends ? message.destination : message.source).value);
      }
      kernels = static_cast<int>(groups.size());
    } else if (const auto* collective = std::get_if<Collective>(&op.what)) {
      kernels = program.groups[collective->group.value].members.size() > 1;
    } else if (std::holds_alternative<Compute>(op.what)) {
      kernels = !expand(program, OpId(i)).collectives.empty();
    }
    int& most = by_stream[op.stream.value];
    most = std::max(most, kernels);
  }
  std::map<std::uint32_t, int> by_rank;
  for (const auto& [stream, most] : by_stream) by_rank[program.streams[stream].rank.value] += most;
  int all = 0;
  for (const auto& [rank, sum] : by_rank) all = std::max(all, sum);
  return all;
}

}  // namespace polyphony::exec::testing
