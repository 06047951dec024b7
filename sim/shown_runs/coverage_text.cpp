#include "sim/shown_runs/coverage_text.h"

#include <iostream>

#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

// A coverage whose binomial test is below this is not what was stated.
constexpr double kRejected = 0.05;

std::string share_text(const Coverage& row, std::size_t i) {
  const auto n = static_cast<double>(row.rows);
  return percent_text(static_cast<double>(row.inside[i]) / n, 0) +
         (row.chance[i] < kRejected ? " !" : "  ");
}

}  // namespace

void print_coverage(const std::vector<Claim>& claims) {
  const std::vector<Coverage> rows = coverage(claims);
  if (rows.empty()) return;
  Table table({"calibration", "block", "n", "50 %", "80 %", "90 %", "p", "p", "p", "half width",
               "median error", "ratio", "score", "one width"});
  for (const Coverage& row : rows)
    table.add({row.footing ? name(*row.footing) : "all", row.block.empty() ? "all" : row.block,
               std::to_string(row.rows), share_text(row, 0), share_text(row, 1), share_text(row, 2),
               number_text(row.chance[0], 2), number_text(row.chance[1], 2),
               number_text(row.chance[2], 2), percent_text(row.half_width),
               percent_text(row.median),
               row.median > 0 ? number_text(row.half_width / row.median, 1) : "",
               number_text(row.score, 2),
               row.one_width_score ? number_text(*row.one_width_score, 2) : ""});
  std::cout
      << "\nIntervals: share of held-out rows whose measured value lies inside\n"
      << table.text()
      << "p: two-sided binomial test of each; !: below 5 %. half width: median, of 90 % "
         "intervals; errors and widths are logarithms.\nscore: interval score at 90 %, smaller "
         "is better; one width: the same if all rows had one width.\nknown: a family or the "
         "largest scale was held out; foreign: a software stack; borrowed: a device; rows that "
         "no fit uses are listed by their stack and device.\n";
}

void print_reliability(const std::vector<JudgedPair>& pairs) {
  if (pairs.empty()) return;
  Table table({"P(A beats B)", "stated", "happened", "pairs"});
  for (const ReliabilityBin& bin : reliability(pairs))
    table.add({percent_text(bin.low, 0) + " to " + percent_text(bin.high, 0),
               percent_text(bin.stated), percent_text(bin.happened), std::to_string(bin.pairs)});
  std::size_t tied = 0;
  std::array<double, kShares.size()> inside{};
  for (const JudgedPair& pair : pairs) {
    tied += pair.tied;
    for (std::size_t i = 0; i < kShares.size(); ++i) inside[i] += pair.inside[i];
  }
  const auto n = static_cast<double>(pairs.size());
  std::cout << "\nOrder: pairs of layouts of one question, both held out of the fit\n"
            << table.text() << pairs.size() << " pairs, " << tied
            << " of them tied; the measured difference lies inside its interval in";
  for (std::size_t i = 0; i < kShares.size(); ++i)
    std::cout << (i ? ", " : " ") << percent_text(inside[i] / n, 0) << " (of "
              << percent_text(kShares[i], 0) << ")";
  std::cout << ".\n";
}

void print_smallest(const std::vector<SmallestFit>& fits) {
  Table table({"calibration", "block", "families", "evidence", "outliers", "rows", "mean", "after",
               "median", "after", "90 %", "after", "half width", "after"});
  for (const SmallestFit& fit : fits)
    table.add({name(fit.footing), fit.block.empty() ? "all" : fit.block,
               std::to_string(fit.families), std::to_string(fit.evidence),
               std::to_string(fit.outliers), number_text(fit.rows, 0),
               percent_text(fit.before.mean), percent_text(fit.after.mean),
               percent_text(fit.before.median), percent_text(fit.after.median),
               percent_text(fit.before.inside, 0), percent_text(fit.after.inside, 0),
               percent_text(fit.before.half_width), percent_text(fit.after.half_width)});
  std::cout
      << "Fitting one step time of each family, its smallest run's: what that does to the others\n"
      << table.text()
      << "evidence: runs on the fewest devices of their family, each in turn the only evidence; "
         "outliers: those that the prior rules out, which change nothing.\nmean, median: of the "
         "errors of the family's other rows, by a fit without the family (known), the stack "
         "(foreign), the device (borrowed); after: with the evidence.\n90 %: share of intervals "
         "that contain the measured value. Errors and widths are logarithms.\n";
}

}  // namespace polyphony::sim
