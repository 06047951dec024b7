#include <doctest/doctest.h>

#include <algorithm>

#include "shared/cost/cost.h"
#include "tests/shared/support/hand_made.h"

using namespace polyphony;
using namespace polyphony::hand_made;

namespace {

Estimate estimate_with(const Program& program, const Lengths& lengths) {
  const Compiled compiled = compile_sound(program);
  return estimate(program, compiled, fixed_costs(program, compiled, lengths));
}

}  // namespace

// p equal stages, m microbatches, forward f, backward b, messages free: the last stage starts after
// (p-1)f, works m(f+b), and its last gradient needs (p-1)b to reach the first stage. Both orders
// give (m + p - 1)(f + b). Source: Narayanan et al., arXiv 2104.04473 §2.2.1 (bubble (p-1)(f+b)).
TEST_CASE("GPipe and 1F1B take (m + p - 1)(f + b)") {
  for (const bool one_f_one_b : {false, true}) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (int microbatches = 1; microbatches <= 6; ++microbatches) {
        const Estimate result = estimate_with(
            pipeline({.stages = stages, .microbatches = microbatches, .one_f_one_b = one_f_one_b}),
            {Seconds(1), Seconds(2), Seconds(0), Seconds(0)});
        CHECK(result.longest_path == Seconds(3 * (microbatches + stages - 1)));
        CHECK(result.timeline.makespan == result.longest_path);
        CHECK(result.busiest_stream == Seconds(3 * microbatches));
        CHECK(result.step() == result.longest_path);
      }
    }
  }
}

TEST_CASE("data-parallel replicas and tensor-parallel ranks run in parallel") {
  const Estimate result =
      estimate_with(pipeline({.stages = 2, .microbatches = 3, .lanes = 2, .tensor = 2}),
                    {Seconds(1), Seconds(2), Seconds(0), Seconds(0.25)});
  // (3 + 2 - 1)·3, then one reduction over lanes and one of step scalars.
  CHECK(result.longest_path == Seconds(12.5));
}

// GPipe, 2 stages, 1 microbatch: F 1, message 0.5, F 1, B 2, message 0.5, B 2 = 7; then the step
// scalars, 0.25.
TEST_CASE("the Timeline has the start and end of each op") {
  const Program program = pipeline({.microbatches = 1, .one_f_one_b = false});
  const Estimate result =
      estimate_with(program, {Seconds(1), Seconds(2), Seconds(0.5), Seconds(0.25)});
  const auto time = [&](std::size_t rank, const char* description) {
    const OpTime value = result.timeline.ops[find(program, Rank(rank), description).value];
    return std::pair(value.start.count(), value.end.count());
  };
  CHECK(time(0, "F") == std::pair(0.0, 1.0));
  CHECK(time(0, "send") == std::pair(1.0, 1.5));
  CHECK(time(1, "receive") == std::pair(0.0, 1.5));  // posted at once, waits for the sender
  CHECK(time(1, "F") == std::pair(1.5, 2.5));
  CHECK(time(1, "B") == std::pair(2.5, 4.5));
  CHECK(time(0, "B") == std::pair(5.0, 7.0));
  CHECK(time(0, "all_reduce") == std::pair(7.0, 7.25));
  CHECK(time(1, "all_reduce") == std::pair(7.0, 7.25));
  CHECK(time(1, "update") == std::pair(7.25, 7.25));
  CHECK(result.timeline.makespan == Seconds(7.25));
}

TEST_CASE("the time of a node is its duration, its delay and its slowest flow") {
  CostTable costs;
  costs.network = {
      {0, 0, 1}, BytesPerSecond(100), BytesPerSecond(10)};  // ranks 0 and 1 share a node
  costs.flows = {{Rank(0), Rank(1), Bytes(300)},
                 {Rank(0), Rank(2), Bytes(20)},
                 {Rank(1), Rank(1), Bytes(9999)}};
  costs.nodes.resize(4);
  costs.nodes[0] = {Seconds(1), Seconds(2), {0, 1}};    // 300 B at 100 B/s
  costs.nodes[1] = {Seconds(0), Seconds(0), {1, 2}};    // 20 B at 10 B/s
  costs.nodes[2] = {Seconds(0.5), Seconds(0), {2, 3}};  // to itself: no link
  costs.nodes[3] = {Seconds(0), Seconds(0), {0, 3}};
  CHECK(unshared_time(costs, 0) == Seconds(6));
  CHECK(unshared_time(costs, 1) == Seconds(2));
  CHECK(unshared_time(costs, 2) == Seconds(0.5));
  CHECK(unshared_time(costs, 3) == Seconds(3));
}

// Rank 0 sends 3 messages of 128 B at once to ranks 1, 2 and 3, each on a stream of its own: alone
// each takes 1 s, but they share rank 0's up link, so the step cannot take less than 3 s.
TEST_CASE("the busiest link bounds the step") {
  Maker maker(4);
  for (std::size_t to = 1; to < 4; ++to) {
    const BufferId out = maker.boundary(Rank(0), BufferKind::boundary);
    const BufferId in = maker.boundary(Rank(to), BufferKind::boundary);
    const MessageId message = maker.message(out, in);
    maker.exchange(maker.stream(Rank(0), StreamKind::send, "to " + std::to_string(to)), true,
                   {message});
    maker.exchange(maker.stream(Rank(to), StreamKind::receive, "receive"), false, {message});
  }
  const Program program = maker.finish();
  const Compiled compiled = compile_sound(program);
  for (const bool inside : {true, false}) {
    CostTable costs;
    costs.network = {{0, 1, 2, 3}, BytesPerSecond(1), BytesPerSecond(128)};
    if (inside) costs.network = {{0, 0, 0, 0}, BytesPerSecond(128), BytesPerSecond(1)};
    for (const Node& node : compiled.nodes) {
      const auto begin = static_cast<std::uint32_t>(costs.flows.size());
      if (node.kind == NodeKind::message) {
        const Message& message = program.messages[node.what];
        costs.flows.push_back({message.source, message.destination, message.bytes});
      }
      costs.nodes.push_back({{}, {}, {begin, static_cast<std::uint32_t>(costs.flows.size())}});
    }
    const Estimate result = estimate(program, compiled, costs);
    CHECK(result.longest_path == Seconds(1));
    CHECK(result.busiest_link == Seconds(3));
    CHECK(result.busiest_stream == Seconds(0));
    CHECK(result.step() == Seconds(3));
  }
}

TEST_CASE("an empty Program takes no time") {
  const Program program;
  const Compiled compiled = compile_sound(program);
  CHECK(estimate(program, compiled, {}).step() == Seconds(0));
}
