// What the fit of the shipped profiles misses on rows that it does not see: made by
// scripts/fit_profiles, kept in scenarios/published/held_out.json beside the rows.
//   {"held_out": 1, "profiles": "…", "stages": {…},
//    "blocks": {"mpt": {"fit": {"rows": 82, "mean": 0.05, …}, "family_out": {…}, "scale_out":
//    {…}}}}
//   family_out  each family predicted by a fit to the others
//   scale_out   the largest number of GPUs of each family predicted by a fit to the smaller ones
//   stack_out   each software stack predicted with its numbers at their start values
//   device_out  each generation of devices predicted with another's numbers
//   unseen      by fold, ln(predicted / measured) of single rows
//   widths      of intervals (shared/hardware/shipped_certainty.cpp), fitted to those and to rows of
//               no fit; and again without each block, and each family's pairs
// Holds for the profiles of its digest alone.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/judged/statistics.h"

namespace polyphony::sim {

struct HeldOutBlock {
  std::optional<Errors> fit, family_out, scale_out;
};
// Relative deviations: residuals by footing, of the products of experts, of a difference; one width
// for every row, whatever it is.
struct Widths {
  double known = 0, foreign = 0, borrowed = 0, experts = 0, layout = 0, tensor = 0, one = 0;
};
struct HeldOut {
  std::string profiles;  // digest
  std::map<std::string, HeldOutBlock> blocks;
  std::map<std::string, std::map<std::string, double>> unseen;  // by fold, by row
  std::set<std::string> stacks;                                 // that have rows in a fit
  std::optional<Widths> widths;
  std::map<std::string, Widths> without_block, without_family;
};
// Whether the text is of such a file, and not a scenario.
bool is_held_out(const std::string& text, const std::string& file);
HeldOut read_held_out(const std::string& text, const std::string& file);

// 64-bit FNV-1a, in hexadecimal digits, over every number of the shipped GPU profiles and stacks
// that predicts a time.
std::string profiles_digest();

}  // namespace polyphony::sim
