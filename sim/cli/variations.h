// --vary PATH=A,B,C and PATH=A..B of `sweep` and `replay`. A..B doubles from A as long as it is at
// most B; several --vary are combined, each value with each.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/vary.h"

namespace polyphony::sim {

// Parses one --vary. Throws InputError that names what is wrong with the text.
Variation parse_variation(const std::string& text);
// Parses several. `most`: how many combinations of values they may make; 0: any number.
std::vector<Variation> parse_variations(const std::vector<std::string>& texts,
                                        std::size_t most = 0);
// Returns whether one of them varies a value of the layout.
bool varies_layout(const std::vector<std::string>& texts);

}  // namespace polyphony::sim
