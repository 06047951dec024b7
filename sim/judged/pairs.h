// Pairs of comparable layouts: published step times with the same model, sequence length, devices,
// precision, software and global batch.
#pragma once

#include "sim/published/run.h"

namespace polyphony::sim {

// Returns a text that is the same for comparable rows and different for others.
std::string question_of(const PublishedRow& row);

struct Pair {
  std::size_t first = 0, second = 0;  // indices of the results, first < second
  LayoutDistance distance{};
};
// Returns all pairs, without duplicates, outliers and skipped rows.
std::vector<Pair> find_pairs(const std::vector<RowResult>& results);

}  // namespace polyphony::sim
