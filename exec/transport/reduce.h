// Computes the element-wise sum or maximum of several arrays, in the order given, so that every
// rank that computes it gets the same bits.
//   bfloat16 is accumulated in float and rounded once. Integer sums wrap.
//   A NaN anywhere makes the maximum NaN, as in torch::max.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "exec/transport/communicator.h"

namespace polyphony::exec {

enum class Element : std::uint8_t { float32, float64, bfloat16, int64 };

std::size_t size_of(Element element);

// Computes sources[0][i] (+ or max) sources[1][i] … for i < `count`, and writes the result to every
// array in `destinations`. A destination may be one of the sources.
void reduce(Element element, Reduction reduction, std::span<const std::byte* const> sources,
            std::span<std::byte* const> destinations, std::size_t count);

}  // namespace polyphony::exec
