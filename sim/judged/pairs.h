// Two layouts of one question: rows of time that share model, sequence, devices, precision,
// software and global batch.
#pragma once

#include "sim/published/run.h"

namespace polyphony::sim {

// What rows of one question have in common, and others not.
std::string question_of(const PublishedRow& row);

struct Pair {
  std::size_t first = 0, second = 0;  // of the results, first < second
  LayoutDistance distance{};
};
// Duplicates, outliers and rows that were skipped are in none.
std::vector<Pair> find_pairs(const std::vector<RowResult>& results);

}  // namespace polyphony::sim
