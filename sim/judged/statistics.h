// Statistics of prediction errors.
//   error    predicted / measured − 1, of a step time or of bytes
//   tau      Kendall's tau-b over all pairs of a family: (concordant − discordant pairs) / the root
//            of (pairs not tied in one list · pairs not tied in the other)
//   regret   measured time of the layout predicted to be fastest / fastest measured time − 1
// Regret compares layouts of one question: rows that share model, sequence length, GPUs and global
// batch. Source: M. G. Kendall, The treatment of ties in ranking problems, Biometrika 33 (1945).
#pragma once

#include <optional>
#include <vector>

namespace polyphony::sim {

double median(std::vector<double> values);  // requires at least one value

struct Errors {
  std::size_t count = 0;
  double mean = 0;    // of |error|
  double median = 0;  // of |error|
  double worst = 0;   // the error with the largest absolute value, with its sign
  double bias = 0;    // mean of error
};
Errors summarize(std::vector<double> errors);

// Returns nullopt for fewer than two values, or if all values of one list are equal.
std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b);
double regret(const std::vector<double>& predicted, const std::vector<double>& measured);

}  // namespace polyphony::sim
