// What clocks that are one cannot show: a message that was there before it was being sent, a collective that a
// member had left before another came. Files of two runs, or of ranks whose clocks are apart, show it.
//   Collectives inside compute ops are not looked at: a barrier is not what every one of them is.
#pragma once

#include <optional>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

struct Contradiction {
  OpId ended, began;  // `ended` cannot end before `began` begins
  Seconds by{};       // but did, by so much
};
// The worst. `timeline`: of every op, by op.
std::optional<Contradiction> worst_contradiction(const Program& program, const Timeline& timeline);

}  // namespace polyphony::traces
