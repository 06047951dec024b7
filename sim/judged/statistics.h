// How good a list of predictions is.
//   error of one  predicted / measured − 1, of a step time or of bytes
//   tau           Kendall's tau-b over all pairs of a family: agreeing less disagreeing pairs over
//                 the root of the pairs untied in the one times those untied in the other
//   regret        the measured time of the layout that is predicted fastest, over the fastest
//                 measured, − 1
// Both rank layouts of one question: rows of one family that share model, sequence, GPUs and global
// batch. Source: M. G. Kendall, The treatment of ties in ranking problems, Biometrika 33 (1945).
#pragma once

#include <optional>
#include <vector>

namespace polyphony::sim {

double median(std::vector<double> values);  // of at least one

struct Errors {
  std::size_t count = 0;
  double mean = 0;    // of |error|
  double median = 0;  // of |error|
  double worst = 0;   // the error whose size is largest, with its sign
  double bias = 0;    // mean of error
};
Errors summarize(std::vector<double> errors);

// Nothing with less than two values, or all of one side equal.
std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b);
double regret(const std::vector<double>& predicted, const std::vector<double>& measured);

}  // namespace polyphony::sim
