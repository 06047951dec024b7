#include "shared/program/message_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace polyphony {

MessageChannels::MessageChannels(const Program& program, bool separate) : program_(program) {
  if (!separate) return;
  std::map<std::pair<BufferId, Rank>, std::uint32_t> before;
  for (const Message& message : program.messages)
    place_.push_back(before[{message.from, message.destination}]++);
}

std::string MessageChannels::name(const Op& exchange, MessageId message) const {
  const std::string& stream = program_.streams[exchange.stream.value].name;
  std::string channel = stream.substr(0, stream.rfind(' '));
  if (!place_.empty() && place_[message.value] > 0)
    channel += " " + std::to_string(place_[message.value]);
  return channel;
}

std::vector<Channel> MessageChannels::of(Rank rank) const {
  std::set<Channel> channels;
  const Range own = program_.ops_of(rank);
  for (std::uint32_t id = own.begin; id < own.end; ++id) {
    const Op& op = program_.ops[id];
    const auto* what = std::get_if<Exchange>(&op.what);
    if (what == nullptr) continue;
    for (std::uint32_t m = what->messages.begin; m < what->messages.end; ++m) {
      const MessageId message = program_.exchange_messages[m];
      const Message& ends = program_.messages[message.value];
      if (ends.source != ends.destination)
        channels.insert({name(op, message), ends.source, ends.destination});
    }
  }
  return {channels.begin(), channels.end()};
}

std::string out_of_order(const Program& program, bool separate) {
  struct Ends {
    std::vector<MessageId> sent, received;
  };
  const MessageChannels channels(program, separate);
  std::map<Channel, Ends> pairs;
  std::vector<OpId> receiver(program.messages.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto* what = std::get_if<Exchange>(&program.ops[i].what);
    if (what == nullptr) continue;
    std::vector<MessageId> messages(program.exchange_messages.begin() + what->messages.begin,
                                    program.exchange_messages.begin() + what->messages.end);
    std::sort(messages.begin(), messages.end());
    for (const MessageId id : messages) {
      const Message& message = program.messages[id.value];
      if (message.source == message.destination) continue;
      Ends& ends = pairs[{channels.name(program.ops[i], id), message.source, message.destination}];
      (what->sends ? ends.sent : ends.received).push_back(id);
      if (!what->sends) receiver[id.value] = OpId(i);
    }
  }
  for (const auto& [pair, ends] : pairs)
    for (std::size_t m = 0; m < ends.received.size(); ++m)
      if (m >= ends.sent.size() || ends.sent[m] != ends.received[m])
        return describe(program, receiver[ends.received[m].value]) +
               " expects another message than the one that arrives first on channel " + pair.name;
  return {};
}

}  // namespace polyphony
