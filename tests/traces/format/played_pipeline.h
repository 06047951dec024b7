// A simulated Program, and the error with which its trace is rejected.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "shared/error.h"
#include "tests/shared/support/hand_made.h"
#include "traces/format/chrome_json.h"

namespace polyphony::traces::test {

// Two stages, two microbatches, F 1 s, B 2 s, messages 0.25 s, collectives 0.5 s.
struct Ran {
  Program program = hand_made::pipeline({.stages = 2, .microbatches = 2, .lanes = 2});
  Timeline timeline;
  Ran() {
    const Compiled compiled = hand_made::compile_sound(program);
    const auto costs = hand_made::fixed_costs(
        program, compiled, {Seconds(1), Seconds(2), Seconds(0.25), Seconds(0.5)});
    timeline = estimate(program, compiled, costs).timeline;
  }
  std::string text(TraceKind kind = TraceKind::predicted) const {
    return write_trace(program, timeline, kind, 7);
  }
};

inline Timeline part_of(const Program& program, const Timeline& whole, Rank rank) {
  Timeline part{{}, whole.makespan};
  for (const OpTime& time : whole.ops) {
    if (program.rank_of(program.ops[time.op.value]) == rank) part.ops.push_back(time);
  }
  return part;
}

inline std::string message_of(const std::string& text, const Program& program) {
  try {
    read_trace(text, "step.json", program);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace polyphony::traces::test
