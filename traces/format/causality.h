// Checks that a Timeline respects causality. On one clock a message cannot arrive before its send
// began, and no member can leave a collective before all members have entered it. A violation means
// that the files are from two runs, or that the ranks' clocks differ.
//
// Collectives inside compute ops are not checked, because not all of them are barriers.
#pragma once

#include <optional>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

struct Contradiction {
  OpId ended, began;  // `ended` must not end before `began` begins
  Seconds by{};       // but did, by this much
};
// Returns the largest violation, if any. `timeline` must hold every op, in order of op ids.
std::optional<Contradiction> worst_contradiction(const Program& program, const Timeline& timeline);

}  // namespace polyphony::traces
