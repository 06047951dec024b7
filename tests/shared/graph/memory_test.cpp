#include "shared/graph/memory.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/shared/support/hand_made.h"

using namespace polyphony;
using namespace polyphony::hand_made;

namespace {

Bytes at(const RankMemory& memory, BufferKind kind) {
  return memory.at_peak[static_cast<std::size_t>(kind)];
}

Timeline timeline_of(const Program& program) {
  const Compiled compiled = compile_sound(program);
  const Lengths lengths{Seconds(1), Seconds(2), Seconds(0.5), Seconds(0.25)};
  return estimate(program, compiled, fixed_costs(program, compiled, lengths)).timeline;
}

constexpr Bytes kHeld = 4 * kParameters;  // parameters, gradients, twice as much optimizer state

}  // namespace

// GPipe keeps the saved activations of all m microbatches, 1F1B those of min(p - stage, m).
TEST_CASE("saved activations at the peak follow from the schedule") {
  constexpr int kStages = 3, kMicrobatches = 5;
  for (const bool one_f_one_b : {false, true}) {
    const Program program =
        pipeline({.stages = kStages, .microbatches = kMicrobatches, .one_f_one_b = one_f_one_b});
    const auto memory = predict_memory(program, timeline_of(program));
    REQUIRE(memory.size() == kStages);
    for (int stage = 0; stage < kStages; ++stage) {
      const RankMemory& rank = memory[static_cast<std::size_t>(stage)];
      const int tapes = one_f_one_b ? std::min(kStages - stage, kMicrobatches) : kMicrobatches;
      CHECK(at(rank, BufferKind::tape) == tapes * kTape);
      CHECK(at(rank, BufferKind::parameter) == kParameters);
      CHECK(at(rank, BufferKind::gradient) == kParameters);
      CHECK(at(rank, BufferKind::optimizer) == 2 * kParameters);
      Bytes sum{};
      for (const Bytes bytes : rank.at_peak) sum += bytes;
      CHECK(sum == rank.peak);
    }
  }
}

// One stage, one microbatch: F from 0 to 1 allocates the saved activations, B from 1 to 3 frees
// them.
TEST_CASE("the curve rises where an op allocates and falls where it frees") {
  const Program program = pipeline({.stages = 1, .microbatches = 1});
  const auto curve = memory_curve(program, timeline_of(program), Rank(0));
  const std::vector<std::pair<Seconds, Bytes>> expected = {{Seconds(0), kHeld + kTape},
                                                           {Seconds(3), kHeld}};
  CHECK(curve == expected);
}

// Stage 1 of 2, one microbatch (F 0-1 on rank 0, message 1-1.5, F 1.5-2.5, B 2.5-4.5,
// message 4.5-5): the receive allocates its buffer of 128 bytes at 0, F frees it at 2.5 after it
// has allocated the saved activations at 1.5; B allocates the gradient's 128 bytes at 2.5, and
// frees the saved activations at 4.5; the send frees at 5.
TEST_CASE("buffers of messages are resident from the receive to the last use") {
  const Program program = pipeline({.stages = 2, .microbatches = 1});
  const Bytes row(128);
  const std::vector<std::pair<Seconds, Bytes>> expected = {{Seconds(0), kHeld + row},
                                                           {Seconds(1.5), kHeld + row + kTape},
                                                           {Seconds(2.5), kHeld + row + kTape},
                                                           {Seconds(4.5), kHeld + row},
                                                           {Seconds(5), kHeld}};
  const Timeline timeline = timeline_of(program);
  CHECK(memory_curve(program, timeline, Rank(1)) == expected);
  const RankMemory rank = predict_memory(program, timeline)[1];
  CHECK(rank.peak == kHeld + row + kTape);
  CHECK(rank.when == Seconds(1.5));
}

TEST_CASE("the Timeline of one rank gives the same memory for this rank") {
  const Program program = pipeline({.stages = 2, .microbatches = 3});
  const Timeline all = timeline_of(program);
  Timeline part;
  for (const OpTime& op : all.ops) {
    if (program.rank_of(program.ops[op.op.value]) == Rank(1)) part.ops.push_back(op);
  }
  CHECK(predict_memory(program, part)[1].peak == predict_memory(program, all)[1].peak);
  CHECK(predict_memory(program, part)[0].peak == kHeld);
  CHECK(memory_curve(program, part, Rank(1)) == memory_curve(program, all, Rank(1)));
}

TEST_CASE("ops of zero duration free all buffers that they allocate") {
  const Program program = pipeline({.stages = 2, .microbatches = 2, .lanes = 2});
  Timeline timeline;
  for (std::size_t op = 0; op < program.ops.size(); ++op)
    timeline.ops.push_back({OpId(op), {}, {}});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto curve = memory_curve(program, timeline, Rank(rank));
    CHECK(curve.back().second == kHeld);
    Bytes most{};
    for (const auto& [time, bytes] : curve) most = std::max(most, bytes);
    CHECK(most == predict_memory(program, timeline)[rank].peak);
  }
}
