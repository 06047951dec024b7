#include "sim/shown/coverage_text.h"

#include <iostream>

#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

// Seldomer by chance than this, a coverage is not what was stated.
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
  Table table({"stack, device", "block", "n", "50 %", "80 %", "90 %", "p", "p", "p", "half width",
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
  std::cout << "\nIntervals: how many hold what was measured, of rows that no fit saw\n"
            << table.text()
            << "p: two-sided binomial test of each; !: below 5 %. half width: median, of 90 %; "
               "errors and widths are logarithms. score: interval score at 90 %, smaller is\n"
               "better; one width: the same, had all rows one width. known: a family or the "
               "largest scale left out; foreign: a stack; borrowed: a device; rows of no fit\n"
               "stand where their stack and device do.\n";
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
  std::cout << "\nOrder: pairs of layouts of one question, neither of them seen by the fit\n"
            << table.text() << pairs.size() << " pairs, " << tied
            << " of them tied; intervals of their difference hold it in";
  for (std::size_t i = 0; i < kShares.size(); ++i)
    std::cout << (i ? ", " : " ") << percent_text(inside[i] / n, 0) << " (of "
              << percent_text(kShares[i], 0) << ")";
  std::cout << ".\n";
}

void print_smallest(const std::vector<SmallestFit>& fits) {
  Table table({"stack, device", "block", "families", "evidence", "outliers", "rows", "mean",
               "after", "median", "after", "90 %", "after", "half width", "after"});
  for (const SmallestFit& fit : fits)
    table.add({name(fit.footing), fit.block.empty() ? "all" : fit.block,
               std::to_string(fit.families), std::to_string(fit.evidence),
               std::to_string(fit.outliers), number_text(fit.rows, 0),
               percent_text(fit.before.mean), percent_text(fit.after.mean),
               percent_text(fit.before.median), percent_text(fit.after.median),
               percent_text(fit.before.inside, 0), percent_text(fit.after.inside, 0),
               percent_text(fit.before.half_width), percent_text(fit.after.half_width)});
  std::cout << "One step time of each family, its smallest run's, and what it does to the others\n"
            << table.text()
            << "evidence: runs on their family's fewest devices, each in turn the only evidence; "
               "outliers: of them, told by the prior, which move nothing. mean, median: of errors "
               "of\nthe family's other rows, by a fit that saw none of the family (known), of the "
               "stack (foreign), of the device (borrowed), then with the evidence. 90 %: how many "
               "intervals\nhold what was measured. Errors and widths are logarithms.\n";
}

}  // namespace polyphony::sim
