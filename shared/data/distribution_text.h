// Distributions as text: "uniform(0,3)" (both ends included), and "lognormal(mu,sigma)" or
// "lognormal(mu,sigma,low,high)", where mu and sigma describe the natural logarithm, so the median
// is exp(mu). A constant is a bare number in JSON, and "7" here.
#pragma once

#include <string>

#include "shared/data/data.h"

namespace polyphony {

// Parses a distribution. Throws InputError without file and pointer.
Distribution parse_distribution(const std::string& text);
std::string to_text(
    const Distribution& distribution);  // parses back to the same value; a constant as "7"

Distribution constant(std::int64_t value);
// Returns true for a lognormal distribution without an upper limit.
bool is_open(const Distribution& distribution);
// Returns the largest value that can be drawn.
std::int64_t largest(const Distribution& distribution);

// Number of loss tokens, larger than any text, which means that every token carries a label.
// Written as "all".
inline constexpr std::int32_t kAllTokens = 1 << 30;

}  // namespace polyphony
