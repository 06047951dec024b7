#include "shared/graph/compile.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/shared/support/hand_made.h"

using namespace polyphony;
using namespace polyphony::hand_made;

namespace {

std::size_t count(const Compiled& compiled, NodeKind kind) {
  return static_cast<std::size_t>(
      std::count_if(compiled.nodes.begin(), compiled.nodes.end(),
                    [&](const Node& node) { return node.kind == kind; }));
}

void check_form(const Program& program, const Compiled& compiled) {
  REQUIRE(compiled.successor_begin.size() == compiled.nodes.size() + 1);
  REQUIRE(compiled.successor_begin.back() == compiled.successors.size());
  std::vector<std::uint32_t> predecessors(compiled.nodes.size(), 0);
  for (std::uint32_t node = 0; node < compiled.nodes.size(); ++node) {
    std::uint32_t last = node;  // every edge goes to a larger index, in order, once
    for (auto i = compiled.successor_begin[node]; i < compiled.successor_begin[node + 1]; ++i) {
      REQUIRE(compiled.successors[i] > last);
      last = compiled.successors[i];
      ++predecessors[last];
    }
  }
  CHECK(predecessors == compiled.predecessors);
  REQUIRE(compiled.op_start.size() == program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    CHECK(compiled.op_start[op] <= compiled.op_end[op]);
    CHECK(std::holds_alternative<Exchange>(program.ops[op].what) ==
          (compiled.op_start[op] != compiled.op_end[op]));
  }
}

}  // namespace

// One rank, one work: F and B in a row, then the update. No messages, no groups.
TEST_CASE("compile makes one node per compute op, in stream order") {
  const Program program = pipeline({.stages = 1, .microbatches = 1});
  const Compiled compiled = compile_sound(program);
  CHECK(compiled.nodes ==
        std::vector<Node>{{NodeKind::compute, 0}, {NodeKind::compute, 1}, {NodeKind::compute, 2}});
  CHECK(compiled.successors == std::vector<std::uint32_t>{1, 2});
  CHECK(compiled.predecessors ==
        std::vector<std::uint32_t>{0, 1, 1});  // the update names B twice: once
  CHECK(compiled.op_start == compiled.op_end);
}

// 2 stages, 1 microbatch. Compute: F, B, update on both ranks = 6. Messages: there and back = 2,
// each with a start join at both ends = 4 joins. The step scalars = 1 collective. Edges: 2 into
// each message = 4. Per rank: F -> B (stream), B -> scalars, scalars -> update, B -> update
// (stream) = 4, so 8. F -> send start and message -> B on rank 0, message -> F and B -> send start
// on rank 1 = 4.
TEST_CASE("compile shares a message between its ends and a collective between its members") {
  const Program program = pipeline({.stages = 2, .microbatches = 1});
  const Compiled compiled = compile_sound(program);
  check_form(program, compiled);
  CHECK(count(compiled, NodeKind::compute) == 6);
  CHECK(count(compiled, NodeKind::message) == 2);
  CHECK(count(compiled, NodeKind::join) == 4);
  CHECK(count(compiled, NodeKind::collective) == 1);
  CHECK(compiled.successors.size() == 16);
  const OpId here = find(program, Rank(0), "all_reduce step");
  const OpId there = find(program, Rank(1), "all_reduce step");
  CHECK(compiled.op_start[here.value] == compiled.op_start[there.value]);
}

TEST_CASE("compile makes one node of a tensor-parallel group's nth compute op") {
  const Program program = pipeline({.stages = 1, .microbatches = 2, .tensor = 4});
  const Compiled compiled = compile_sound(program);
  check_form(program, compiled);
  CHECK(count(compiled, NodeKind::compute) ==
        4 + 4);  // F and B of two works, shared; an update on each rank
  for (const char* op :
       {"F language[0,3) work 0", "F language[0,3) work 1", "B language[0,3) work 1"}) {
    const std::uint32_t node = compiled.op_start[find(program, Rank(0), op).value];
    for (std::size_t rank = 1; rank < 4; ++rank) {
      CHECK(compiled.op_start[find(program, Rank(rank), op).value] == node);
    }
  }
}

TEST_CASE("compile returns a well-formed graph for many shapes, and is deterministic") {
  for (const bool one_f_one_b : {false, true}) {
    for (const int stages : {1, 3}) {
      for (const int lanes : {1, 2}) {
        const Program program = pipeline({.stages = stages,
                                          .microbatches = 4,
                                          .lanes = lanes,
                                          .tensor = 2,
                                          .one_f_one_b = one_f_one_b});
        const Compiled compiled = compile_sound(program);
        check_form(program, compiled);
        CHECK(compile_sound(program).nodes == compiled.nodes);
      }
    }
  }
  const Program local = local_bridge();
  check_form(local, compile_sound(local));
}

TEST_CASE("an exchange without messages keeps its place in the stream") {
  Maker maker(1);
  const StreamId stream = maker.stream(Rank(0), StreamKind::send, "send");
  maker.exchange(stream, true, {});
  maker.exchange(stream, true, {});
  const Program program = maker.finish();
  const Compiled compiled = compile_sound(program);
  CHECK(compiled.successors == std::vector<std::uint32_t>{1, 2, 3});
}

// Each rank receives before it sends, on one stream: no rank can start.
TEST_CASE("compile returns a cycle as a fault with its path") {
  Maker maker(2);
  BufferId out[2], in[2];
  StreamId streams[2];
  for (std::size_t rank = 0; rank < 2; ++rank) {
    out[rank] = maker.boundary(Rank(rank), BufferKind::boundary);
    in[rank] = maker.boundary(Rank(rank), BufferKind::boundary);
    streams[rank] = maker.stream(Rank(rank), StreamKind::send, "both");
  }
  const MessageId there = maker.message(out[0], in[1]);
  const MessageId back = maker.message(out[1], in[0]);
  maker.exchange(streams[0], false, {back});
  maker.exchange(streams[0], true, {there});
  maker.exchange(streams[1], false, {there});
  maker.exchange(streams[1], true, {back});
  const auto result = compile(maker.finish());
  REQUIRE(std::holds_alternative<Fault>(result));
  const Fault& fault = std::get<Fault>(result);
  CHECK(fault.kind == FaultKind::cycle);
  for (const char* step :
       {"message 1 from rank 1 to rank 0", "rank 0 send 1 message to rank 1",
        "message 0 from rank 0 to rank 1", "rank 1 send 1 message to rank 0", " -> "}) {
    CHECK_MESSAGE(fault.text.find(step) != std::string::npos, fault.text);
  }
}
