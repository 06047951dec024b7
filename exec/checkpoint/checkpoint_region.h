// Which elements of a parameter a tensor in a checkpoint has, in one line of text, and how two such
// sets overlap.
//   "whole"                      all of them
//   "rows 1/2"                   what the first of two tensor-parallel ranks holds; also "columns"
//   and
//                                "heads" (Cut of shared/chunk/parameters.h), and "experts 3/4"
//   "elements 120:300"           of the parameter, or of what the words before say, in row-major
//   order "columns 2/4, experts 1/2, elements 0:77"
// A part need not be as large as the others; where it lies follows from Parameter::runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/chunk/parameters.h"

namespace polyphony::exec {

struct Region {
  ShardIndex place;
  Interval elements;  // of what `place` holds

  bool whole_part(const Parameter& parameter) const;  // all that `place` holds
  std::string text(const Parameter& parameter) const;
  // In global order; `local` counts from elements.begin.
  std::vector<ElementRun> runs(const Parameter& parameter) const;
  bool operator==(const Region&) const = default;
};
// Nothing when the text says no region of the parameter.
std::optional<Region> parse_region(const Parameter& parameter, const std::string& text);

struct ElementCopy {
  std::int64_t from = 0, to = 0, count = 0;  // local on both sides
  bool operator==(const ElementCopy&) const = default;
};
std::vector<ElementCopy> overlap(const std::vector<ElementRun>& from,
                                 const std::vector<ElementRun>& to);

}  // namespace polyphony::exec
