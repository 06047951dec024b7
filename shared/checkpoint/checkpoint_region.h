// The elements of a parameter that a tensor in a checkpoint contains, as one line of text, and the
// overlap of two such sets.
//   "whole"                      all elements
//   "rows 1/2"                   what the first of two tensor-parallel ranks holds; also "columns"
//                                and "heads" (Cut of shared/chunk/parameters.h), and "experts 3/4"
//   "elements 120:300"           elements of the parameter in row-major order, or of the part named
//                                before: "columns 2/4, experts 1/2, elements 0:77"
// Parts need not be equally large; Parameter::runs gives their position.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/chunk/parameters.h"

namespace polyphony {

struct Region {
  ShardIndex place;
  Interval elements;  // within what `place` holds

  bool whole_part(const Parameter& parameter) const;  // true: all that `place` holds
  std::string text(const Parameter& parameter) const;
  // The runs of elements in global order; `local` counts from elements.begin.
  std::vector<ElementRun> runs(const Parameter& parameter) const;
  bool operator==(const Region&) const = default;
};
// Returns the region, or nothing if the text does not describe a region of the parameter.
std::optional<Region> parse_region(const Parameter& parameter, const std::string& text);

struct ElementCopy {
  std::int64_t from = 0, to = 0, count = 0;  // local on both sides
  bool operator==(const ElementCopy&) const = default;
};
// Returns what to copy from one set of elements to the other.
std::vector<ElementCopy> overlap(const std::vector<ElementRun>& from,
                                 const std::vector<ElementRun>& to);

}  // namespace polyphony
