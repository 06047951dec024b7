// The order in which one thread queues a rank's ops: it is legal, needs few buffers, and never
// causes ranks to wait for each other, however often their hosts wait for their devices.
#include "shared/program/queue_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/runner/run_ahead.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/parity/parity_order.h"

namespace polyphony::exec::testing {

namespace {

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

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const std::vector<Case>& cases :
       {parity_cases(), planned_cases(), searched_cases(), offload_cases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("one thread queues each op and each message once, after what they wait for") {
    for (const Case& c : all_cases()) {
      CAPTURE(c.name);
      const Program program = whole_program(c);
      for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
        std::set<OpId> begun, ended;
        std::map<OpId, std::size_t> moved;
        std::set<MessageId> sent;
        bool right = true;
        const QueueOrder order(program, Rank(r));
        for (const Launch& launch : order.launches()) {
          const Op& op = program.ops[launch.op.value];
          right = right && begun.insert(launch.op).second == launch.first;
          for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w)
            right = right && ended.contains(program.waits[w]);
          for (const MessageId m : order.messages(launch)) {
            const Message& message = program.messages[m.value];
            const bool sends = std::get<Exchange>(op.what).sends;
            if (sends) right = right && sent.insert(m).second;
            right = right && (sends || message.source != message.destination || sent.contains(m));
            ++moved[launch.op];
          }
          if (launch.last) right = right && ended.insert(launch.op).second;
        }
        for (const OpId id : begun)
          if (const auto* what = std::get_if<Exchange>(&program.ops[id.value].what))
            right = right && moved[id] == what->messages.size();
        CHECK(right);
        CHECK(ended.size() == program.ops_of(Rank(r)).size());
      }
    }
  }

  // A gather of parameters comes after sums of gradients that the Program has later, if its task
  // has a later turn.
  TEST_CASE("ops that one thread queued are held to the order of their turns") {
    const std::vector<Case> all = parity_matrix().cases;
    const auto c = std::find_if(all.begin(), all.end(), [](const Case& one) {
      return one.name == "colocated + fully sharded";
    });
    REQUIRE(c != all.end());
    const Program program = whole_program(*c);
    std::vector<torch::Tensor> times;  // as if one device ran every rank's launches in turn
    for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
      std::vector<double> spans(2 * program.rank_ops[r].size(), 0.0);
      double now = 1;
      const QueueOrder order(program, Rank(r));
      for (const Launch& launch : order.launches()) {
        double* span = &spans[2 * std::size_t{launch.op.value - program.rank_ops[r].begin}];
        if (launch.first) span[0] = now;
        if (launch.last) span[1] = now + 0.5;
        now += 1;
      }
      times.push_back(torch::tensor(spans, torch::kFloat64));
    }
    const double apart = 1e6;  // clocks of different ranks are not compared
    CHECK(find_disorder(program, times, apart, true) == "");
    const std::string in_order = find_disorder(program, times, apart, false);
    INFO(in_order);
    CHECK(in_order.find("the op before it on its stream") != std::string::npos);
  }

  TEST_CASE("a step ends on devices that run one launch at a time, in the order of the queues") {
    std::vector<Case> cases = all_cases();
    const std::vector<Case> pairs = parity_matrix().cases;  // every pair of features
    cases.insert(cases.end(), pairs.begin(), pairs.end());
    for (const Case& c : cases) {
      CAPTURE(c.name);
      CHECK(find_queue_deadlock(whole_program(c)) == "");
    }
    MESSAGE(cases.size() << " layouts");
  }

  TEST_CASE("a host is ahead by at most the limit, and always by the newest op") {
    // The last of two stages releases the buffers that each microbatch received and sent back, 8
    // bytes per element.
    const std::vector<Case> cases = parity_cases();
    const auto found = std::find_if(cases.begin(), cases.end(), [](const Case& c) {
      return c.name == "homogeneous TP1 PP2 DP1, 1f1b x4";
    });
    REQUIRE(found != cases.end());
    const Program program = whole_program(*found);
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
