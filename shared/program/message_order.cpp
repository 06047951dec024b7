#include "shared/program/message_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace polyphony {

std::string channel_of(const Program& program, const Op& exchange) {
  const std::string& stream = program.streams[exchange.stream.value].name;
  return stream.substr(0, stream.rfind(' '));
}

std::vector<Channel> channels_of(const Program& program, Rank rank) {
  std::set<Channel> channels;
  const Range own = program.ops_of(rank);
  for (std::uint32_t id = own.begin; id < own.end; ++id) {
    const Op& op = program.ops[id];
    const auto* what = std::get_if<Exchange>(&op.what);
    if (what == nullptr) continue;
    const std::string name = channel_of(program, op);
    for (std::uint32_t m = what->messages.begin; m < what->messages.end; ++m) {
      const Message& message = program.messages[program.exchange_messages[m].value];
      if (message.source != message.destination)
        channels.insert({name, message.source, message.destination});
    }
  }
  return {channels.begin(), channels.end()};
}

std::string out_of_order(const Program& program) {
  struct Ends {
    std::vector<MessageId> sent, received;
  };
  std::map<Channel, Ends> pairs;
  std::vector<OpId> receiver(program.messages.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto* what = std::get_if<Exchange>(&program.ops[i].what);
    if (what == nullptr) continue;
    std::vector<MessageId> messages(program.exchange_messages.begin() + what->messages.begin,
                                    program.exchange_messages.begin() + what->messages.end);
    std::sort(messages.begin(), messages.end());
    const std::string channel = channel_of(program, program.ops[i]);
    for (const MessageId id : messages) {
      const Message& message = program.messages[id.value];
      if (message.source == message.destination) continue;
      Ends& ends = pairs[{channel, message.source, message.destination}];
      (what->sends ? ends.sent : ends.received).push_back(id);
      if (!what->sends) receiver[id.value] = OpId(i);
    }
  }
  for (const auto& [pair, ends] : pairs)
    for (std::size_t m = 0; m < ends.received.size(); ++m)
      if (m >= ends.sent.size() || ends.sent[m] != ends.received[m])
        return describe(program, receiver[ends.received[m].value]) +
               " takes another message than the one that comes first on " + pair.name;
  return {};
}

}  // namespace polyphony
