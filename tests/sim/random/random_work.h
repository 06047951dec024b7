// The model and the table of microbatches that the random Programs of tests/sim have in common: one
// language module, and one text sample per microbatch.
#pragma once

#include <cstdint>

#include "shared/program/program.h"

namespace polyphony::tests {

// Adds a language module with `blocks` blocks and width `hidden`, and its grid over all ranks.
void add_language(Program& program, bool trainable, int blocks, int hidden, int tensor, int stages);

// Adds a microbatch with one new sample of `tokens` tokens; half of them, at least one, have
// labels.
WorkId add_work(Program& program, int lane, int index, std::int32_t tokens);

}  // namespace polyphony::tests
