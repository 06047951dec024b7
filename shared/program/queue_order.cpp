#include "shared/program/queue_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "shared/error.h"

namespace polyphony {
namespace {

constexpr std::uint32_t kEnd = ~std::uint32_t{0};  // turn of the end of the step

// Ascending places are queued one after another.
struct Place {
  std::uint32_t turn = 0;
  enum Kind : std::uint8_t { message, op } kind = message;
  std::uint32_t number = 0;  // of the first message, or of the op
  bool receives = false;
  auto operator<=>(const Place&) const = default;
};

struct Entry {
  Place place;
  Launch launch;
};

// Finds the turns at which a rank gathers sharded parameters. All members of the group must find
// the same, from what they share: the tasks of the branch whose parameters are gathered.
//   A gather belongs to the task that first reads the parameters. Where the branch's previous task
//   is the one right before it on every member, the gather has that task's turn, so that it runs
//   beside it: if the ranks have no other branch, or if no turn lies between the two. Else it has
//   the turn of the task that reads.
class GatherTurns {
 public:
  GatherTurns(const Program& program, Range own) {
    std::map<std::uint32_t, std::uint32_t> last;  // by branch: turn of its latest task
    std::set<std::uint32_t> branches;
    for (std::uint32_t id = own.begin; id < own.end; ++id)
      if (const auto* what = std::get_if<Compute>(&program.ops[id].what))
        branches.insert(program.works[what->work.value].branch);
    for (std::uint32_t id = own.begin; id < own.end; ++id) {
      const Op& op = program.ops[id];
      const auto* what = std::get_if<Compute>(&op.what);
      if (what == nullptr) continue;
      const std::uint32_t branch = program.works[what->work.value].branch;
      const auto before = last.find(branch);
      const bool right_before =
          before != last.end() && (branches.size() == 1 || before->second + 1 == what->turn);
      for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w)
        turns_.try_emplace(program.waits[w], right_before ? before->second : what->turn);
      last[branch] = what->turn;
    }
  }
  std::uint32_t of(OpId gather, std::uint32_t otherwise) const {
    const auto found = turns_.find(gather);
    return found == turns_.end() ? otherwise : found->second;
  }

 private:
  std::map<OpId, std::uint32_t> turns_;  // of what compute ops wait for, by the first of these
};

bool gathers(const Op& op) {
  const auto* what = std::get_if<Collective>(&op.what);
  return what != nullptr && what->purpose == Purpose::parameters;
}

}  // namespace

QueueOrder::QueueOrder(const Program& program, Rank rank) {
  const Range own = program.ops_of(rank);
  const GatherTurns gather_turns(program, own);
  std::vector<Entry> entries;
  std::uint32_t last_compute = own.begin;
  for (std::uint32_t id = own.begin; id < own.end; ++id)
    if (std::holds_alternative<Compute>(program.ops[id].what)) last_compute = id;
  std::uint32_t turn = 0;  // of the last compute op
  for (std::uint32_t id = own.begin; id < own.end; ++id) {
    const Op& op = program.ops[id];
    if (const auto* what = std::get_if<Compute>(&op.what)) {
      turn = what->turn;
      entries.push_back({{turn, Place::op, id}, {OpId(id)}});
    } else if (const auto* exchange = std::get_if<Exchange>(&op.what)) {
      std::map<std::pair<BufferId, BufferId>, std::vector<MessageId>> by_buffers;
      for (std::uint32_t m = exchange->messages.begin; m < exchange->messages.end; ++m) {
        const MessageId message = program.exchange_messages[m];
        const Message& ends = program.messages[message.value];
        by_buffers[{ends.from, ends.to}].push_back(message);
      }
      for (auto& [buffers, list] : by_buffers) {
        std::sort(list.begin(), list.end());
        const auto begin = static_cast<std::uint32_t>(messages_.size());
        messages_.insert(messages_.end(), list.begin(), list.end());
        const Range range{begin, static_cast<std::uint32_t>(messages_.size())};
        entries.push_back({{program.messages[list.front().value].turn, Place::message,
                            list.front().value, !exchange->sends},
                           {OpId(id), range}});
      }
    } else {
      std::uint32_t at = id > last_compute ? kEnd : turn;
      if (gathers(op)) at = gather_turns.of(OpId(id), at);
      entries.push_back({{at, Place::op, id}, {OpId(id)}});
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.place < b.place; });
  std::vector<std::uint32_t> first(own.size(), kEnd), last(own.size(), 0);
  for (const Entry& entry : entries) {
    const auto at = static_cast<std::uint32_t>(launches_.size());
    const std::size_t op = entry.launch.op.value - own.begin;
    first[op] = std::min(first[op], at);
    last[op] = at;
    launches_.push_back(entry.launch);
  }
  for (std::uint32_t at = 0; at < launches_.size(); ++at) {
    Launch& launch = launches_[at];
    const std::size_t op = launch.op.value - own.begin;
    launch.first = first[op] == at;
    launch.last = last[op] == at;
    const Range waits = program.ops[launch.op.value].waits_for;
    for (std::uint32_t w = waits.begin; launch.first && w < waits.end; ++w)
      POLYPHONY_CHECK(last[program.waits[w].value - own.begin] < at,
                      describe(program, launch.op)
                          << " would be queued before " << describe(program, program.waits[w])
                          << ", for which it waits (shared/step/turns.h)");
  }
}

std::vector<Channel> channels_of(const Program& program, Rank rank) {
  std::set<Channel> channels;
  const Range own = program.ops_of(rank);
  for (std::uint32_t id = own.begin; id < own.end; ++id) {
    const auto* what = std::get_if<Exchange>(&program.ops[id].what);
    if (what == nullptr) continue;
    for (std::uint32_t m = what->messages.begin; m < what->messages.end; ++m) {
      const Message& ends = program.messages[program.exchange_messages[m].value];
      if (ends.source != ends.destination) channels.insert({ends.source, ends.destination});
    }
  }
  return {channels.begin(), channels.end()};
}

namespace {

// Devices that run one launch at a time, in the order in which they were queued.
class SerialDevices {
 public:
  explicit SerialDevices(const Program& program) : program_(program) {
    for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
      orders_.emplace_back(program, Rank(r));
      for (const Launch& launch : orders_.back().launches()) add(r, launch);
    }
    next_.resize(orders_.size());
  }

  std::string run() {
    std::vector<std::uint32_t> ready(orders_.size());
    for (std::uint32_t r = 0; r < ready.size(); ++r) ready[r] = r;
    while (!ready.empty()) {
      const std::uint32_t rank = ready.back();
      ready.pop_back();
      while (next_[rank] < meetings_[rank].size()) {
        const std::uint32_t meeting = meetings_[rank][next_[rank]];
        if (meeting != kAlone) {
          std::vector<std::uint32_t>& came = came_[meeting];
          if (std::find(came.begin(), came.end(), rank) == came.end()) came.push_back(rank);
          if (came.size() < members_[meeting]) break;
          for (const std::uint32_t other : came) {
            ++next_[other];
            if (other != rank) ready.push_back(other);
          }
          came.clear();
          continue;
        }
        ++next_[rank];
      }
    }
    std::string stuck;
    int named = 0;
    constexpr int kMost = 4;  // enough to see what waits for what
    for (std::uint32_t r = 0; r < orders_.size(); ++r)
      if (next_[r] < meetings_[r].size() && named++ < kMost)
        stuck += (stuck.empty() ? "" : "; ") + ("rank " + std::to_string(r)) + " in \"" +
                 describe(program_, orders_[r].launches()[next_[r]].op) + "\"";
    return stuck;
  }

 private:
  static constexpr std::uint32_t kAlone = ~std::uint32_t{0};
  using Pair = std::pair<BufferId, BufferId>;

  void add(std::uint32_t rank, const Launch& launch) {
    if (meetings_.size() <= rank) meetings_.resize(rank + std::size_t{1});
    const Op& op = program_.ops[launch.op.value];
    std::uint32_t meeting = kAlone;
    if (launch.messages.size() > 0) {
      const Message& ends = program_.messages[orders_[rank].messages(launch).front().value];
      if (ends.source != ends.destination) meeting = of_pair(Pair{ends.from, ends.to});
    } else {
      const auto* collective = std::get_if<Collective>(&op.what);
      const GroupId group = collective ? collective->group : op.group;
      if (group.valid() && program_.groups[group.value].members.size() > 1)
        meeting = of_group(group, collective != nullptr, rank);
    }
    meetings_[rank].push_back(meeting);
  }
  std::uint32_t meeting_of(std::size_t members) {
    members_.push_back(members);
    came_.emplace_back();
    return static_cast<std::uint32_t>(members_.size() - 1);
  }
  std::uint32_t of_pair(const Pair& pair) {
    const auto [found, fresh] = pairs_.try_emplace(pair, 0);
    if (fresh) found->second = meeting_of(2);
    return found->second;
  }
  // The n-th calls of a group meet. Compute ops and collectives of a group are numbered apart.
  std::uint32_t of_group(GroupId group, bool collective, std::uint32_t rank) {
    const std::uint32_t number = calls_[{group, collective, rank}]++;
    const auto [found, fresh] = groups_.try_emplace({group, collective, number}, 0);
    if (fresh) found->second = meeting_of(program_.groups[group.value].members.size());
    return found->second;
  }

  const Program& program_;
  std::vector<QueueOrder> orders_;
  std::vector<std::vector<std::uint32_t>> meetings_;  // by rank and launch
  std::vector<std::size_t> next_;                     // by rank: the launch that runs
  std::vector<std::size_t> members_;                  // by meeting
  std::vector<std::vector<std::uint32_t>> came_;      // by meeting
  std::map<Pair, std::uint32_t> pairs_;
  std::map<std::tuple<GroupId, bool, std::uint32_t>, std::uint32_t> calls_, groups_;
};

}  // namespace

std::string find_queue_deadlock(const Program& program) { return SerialDevices(program).run(); }

}  // namespace polyphony
