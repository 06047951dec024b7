// Distributions as people write them: "uniform(0,3)" (both ends included), "lognormal(mu,sigma)" or
// "lognormal(mu,sigma,low,high)", of the natural logarithm: the median is exp(mu). A constant is a
// bare number in JSON, or "7" here. Errors: InputError without file and pointer.
#pragma once

#include <string>

#include "shared/data/data.h"

namespace polyphony {

Distribution parse_distribution(const std::string& text);
std::string to_text(
    const Distribution& distribution);  // parses back to the same value; a constant as "7"

Distribution constant(std::int64_t value);
// True for a lognormal that was given no upper end.
bool is_open(const Distribution& distribution);
// The largest value that can be drawn.
std::int64_t largest(const Distribution& distribution);

// A number of loss tokens that no text reaches: every token carries a label. Written "all".
inline constexpr std::int32_t kAllTokens = 1 << 30;

}  // namespace polyphony
