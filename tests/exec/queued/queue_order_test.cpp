// The order in which one thread queues a rank's ops: it is legal, needs few buffers, and never
// causes ranks to wait for each other, however often their hosts wait for their devices.
#include "exec/runner/queue_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/runner/run_ahead.h"
#include "shared/lower/lower.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

namespace {

Program program_of(const Case& c) {
  const Scenario scenario = make_scenario(c);
  return lower(scenario, c.layout, make_plan(scenario, c.layout),
               make_dataset(c, scenario)->batch(0));
}

std::vector<OpId> whole_order(const Program& program, Rank rank) {
  QueueOrder order(program, rank);
  std::vector<OpId> ops;
  while (const std::optional<OpId> op = order.next()) ops.push_back(*op);
  return ops;
}

template <class Visit>
void each_message(const Program& program, const Op& op, Visit visit) {
  const auto* what = std::get_if<Exchange>(&op.what);
  if (what == nullptr) return;
  for (std::uint32_t m = what->messages.begin; m < what->messages.end; ++m)
    visit(program.exchange_messages[m], what->sends);
}

bool computes(const Program& program, const Op& op) {
  return program.streams[op.stream.value].kind == StreamKind::compute;
}

// Simulates ranks whose hosts queue by QueueOrder and wait for the device after every compute op,
// on devices that run everything that the blocking rules of program.h allow.
class World {
 public:
  explicit World(const Program& program)
      : program_(program), queued_(program.ops.size()), ended_(queued_) {
    std::map<std::pair<GroupId, bool>, std::map<Rank, std::size_t>> met;
    std::map<std::tuple<GroupId, bool, std::size_t>, std::vector<OpId>> meetings;
    std::map<MessageId, std::array<OpId, 2>> ends;
    for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
      const Range own = program.ops_of(Rank(r));
      orders_.emplace_back(program, Rank(r));
      for (std::uint32_t id = own.begin; id < own.end; ++id) {
        const Op& op = program.ops[id];
        last_[id] = before_[op.stream];
        before_[op.stream] = OpId(id);
        const auto* collective = std::get_if<Collective>(&op.what);
        const GroupId group = collective ? collective->group : op.group;
        if (group.valid()) {
          const std::pair kind(group, collective != nullptr);
          meetings[{group, kind.second, met[kind][Rank(r)]++}].emplace_back(id);
        }
        each_message(program, op, [&](MessageId m, bool sends) { ends[m][sends] = OpId(id); });
      }
    }
    for (const auto& [what, ops] : meetings)
      for (const OpId op : ops) partners_[op] = ops;
    for (const auto& [message, both] : ends) {
      partners_[both[0]].push_back(both[1]);
      const Message& m = program.messages[message.value];
      if (m.source != m.destination) partners_[both[1]].push_back(both[0]);
    }
  }

  // Returns true if all ops end.
  bool runs() {
    std::vector<std::optional<OpId>> waits(orders_.size());
    for (;;) {
      bool moves = false;
      for (std::size_t r = 0; r < orders_.size(); ++r)
        while (!waits[r]) {
          const std::optional<OpId> op = orders_[r].next();
          if (!op) break;
          moves = queued_[op->value] = true;
          if (computes(program_, program_.ops[op->value])) waits[r] = *op;
        }
      while (device_moves()) moves = true;
      for (std::optional<OpId>& op : waits)
        if (op && ended_[op->value]) op.reset();
      if (std::all_of(ended_.begin(), ended_.end(), [](bool ended) { return ended; })) return true;
      if (!moves) return false;
    }
  }

 private:
  bool starts(OpId id) const {
    if (ended_[id.value]) return true;
    if (!queued_[id.value]) return false;
    const OpId before = last_.at(id.value);
    if (before.valid() && !ended_[before.value]) return false;
    const Range waits = program_.ops[id.value].waits_for;
    for (std::uint32_t w = waits.begin; w < waits.end; ++w)
      if (!ended_[program_.waits[w].value]) return false;
    return true;
  }
  bool device_moves() {
    bool moves = false;
    for (std::uint32_t id = 0; id < ended_.size(); ++id) {
      if (ended_[id] || !starts(OpId(id))) continue;
      const auto found = partners_.find(OpId(id));
      const bool all =
          found == partners_.end() || std::all_of(found->second.begin(), found->second.end(),
                                                  [this](OpId other) { return starts(other); });
      if (!all) continue;
      moves = ended_[id] = true;
    }
    return moves;
  }

  const Program& program_;
  std::vector<bool> queued_, ended_;
  std::vector<QueueOrder> orders_;
  std::map<StreamId, OpId> before_;
  std::map<std::uint32_t, OpId> last_;
  std::map<OpId, std::vector<OpId>> partners_;
};

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const std::vector<Case>& cases :
       {parity_cases(), planned_cases(), searched_cases(), offload_cases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("one thread queues each op once, after its dependencies") {
    for (const Case& c : all_cases()) {
      CAPTURE(c.name);
      const Program program = program_of(c);
      for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
        std::map<OpId, std::size_t> place;
        std::map<StreamId, OpId> last;
        std::set<MessageId> sent;
        bool right = true;
        for (const OpId id : whole_order(program, Rank(r))) {
          const Op& op = program.ops[id.value];
          right = right && place.try_emplace(id, place.size()).second;
          for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w)
            right = right && place.contains(program.waits[w]);
          const auto [before, first] = last.try_emplace(op.stream, id);
          right = right && (first || std::exchange(before->second, id) < id);
          each_message(program, op, [&](MessageId m, bool sends) {
            const Message& message = program.messages[m.value];
            if (sends) sent.insert(m);
            right = right && (message.source != message.destination || sent.contains(m));
          });
        }
        CHECK(right);
        CHECK(place.size() == program.ops_of(Rank(r)).size());
      }
    }
  }

  TEST_CASE("ranks whose hosts wait inside every op finish the step") {
    for (const Case& c : all_cases()) {
      CAPTURE(c.name);
      CHECK(World(program_of(c)).runs());
    }
  }

  TEST_CASE("a host is ahead by at most the limit, and always by the newest op") {
    // The last of two stages releases the buffers that each microbatch received and sent back, 8
    // bytes per element.
    const std::vector<Case> cases = parity_cases();
    const auto found = std::find_if(cases.begin(), cases.end(), [](const Case& c) {
      return c.name == "homogeneous TP1 PP2 DP1, 1f1b x4";
    });
    REQUIRE(found != cases.end());
    const Program program = program_of(*found);
    std::vector<std::pair<OpId, std::int64_t>> given_up;
    const Range own = program.ops_of(Rank(1));
    for (std::uint32_t id = own.begin; id < own.end; ++id) {
      const Op& op = program.ops[id];
      // Compute ops free received rows, sends free the gradients of backward ops.
      const BufferKind freed =
          computes(program, op) ? BufferKind::boundary : BufferKind::boundary_gradient;
      for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
        const BufferUse& use = program.buffer_uses[u];
        const Buffer& buffer = program.buffers[use.buffer.value];
        if (use.use == Use::free && buffer.kind == freed)
          given_up.emplace_back(OpId(id), buffer.rows * buffer.width * 8);
      }
    }
    REQUIRE(given_up.size() == 8);  // four microbatches, forward and backward
    constexpr std::int64_t kMuch = std::int64_t{1} << 40;
    for (const std::int64_t limit : {std::int64_t{0}, given_up[0].second, kMuch}) {
      RunAhead ahead(program, Rank(1), Bytes(limit));
      std::size_t oldest = 0;
      std::int64_t bytes = 0;  // of all except the newest
      for (std::size_t i = 0; i < given_up.size(); ++i) {
        ahead.add(given_up[i].first);
        bytes += i == 0 ? 0 : given_up[i - 1].second;
        while (bytes > limit) {
          REQUIRE(ahead.too_far() == given_up[oldest].first);
          ahead.passed();
          bytes -= given_up[oldest++].second;
        }
        CHECK_FALSE(ahead.too_far().has_value());
      }
      if (limit == 0) CHECK(oldest == 7);
      if (limit == kMuch) CHECK(oldest == 0);
    }
  }
}

}  // namespace polyphony::exec::testing
