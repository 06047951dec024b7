// Cross-validation errors of the shipped profiles: errors on rows that were excluded from the fit.
// scripts/fit_profiles writes them to scenarios/published/held_out.json, next to the rows.
//   {"held_out": 1, "profiles": "…", "stages": {…},
//    "blocks": {"mpt": {"fit": {"rows": 82, "mean": 0.05, …}, "family_out": {…}, "scale_out":
//    {…}}}}
//   family_out  each family predicted by a fit to the other families
//   scale_out   the largest number of GPUs of each family predicted by a fit to the smaller ones
//   stack_out   each software stack predicted with its parameters at their start values
//   device_out  each device generation predicted with the parameters of another
//   unseen      by fold, ln(predicted / measured) of single rows
//   widths      widths of intervals (shared/hardware/shipped_certainty.cpp), fitted to these errors
//               and to rows that are in no fit; also without each block, and without the pairs of
//               each family
// The file is valid only for the profiles whose digest it contains.
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
// Relative standard deviations: residuals by calibration basis (known, foreign, borrowed); of
// expert GEMMs; of the difference of two layouts (layout, tensor); and `one` width for all rows,
// for comparison.
struct Widths {
  double known = 0, foreign = 0, borrowed = 0, experts = 0, layout = 0, tensor = 0, one = 0;
};
struct HeldOut {
  std::string profiles;  // digest
  std::map<std::string, HeldOutBlock> blocks;
  std::map<std::string, std::map<std::string, double>> unseen;  // by fold, by row
  std::set<std::string> stacks;                                 // stacks with rows in a fit
  std::optional<Widths> widths;
  std::map<std::string, Widths> without_block, without_family;
};
// Returns whether the text is that of such a file, rather than of a scenario.
bool is_held_out(const std::string& text, const std::string& file);
// Parses the file. Throws InputError if it is not valid.
HeldOut read_held_out(const std::string& text, const std::string& file);

// Returns the 64-bit FNV-1a hash, in hexadecimal, of all numbers in the shipped GPU profiles and
// stacks that affect a predicted time.
std::string profiles_digest();

}  // namespace polyphony::sim
