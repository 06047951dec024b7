// The model and work table that the random Programs of tests/sim share: one language module, one
// text sample a work item.
#pragma once

#include <cstdint>

#include "shared/program/program.h"

namespace polyphony::tests {

// A language module of `blocks` blocks and width `hidden`, and its grid over all ranks of the
// Program.
void add_language(Program& program, bool trainable, int blocks, int hidden, int tensor, int stages);

// A work item of one new sample of `tokens` tokens, half of them (at least one) with a label.
WorkId add_work(Program& program, int lane, int index, std::int32_t tokens);

}  // namespace polyphony::tests
