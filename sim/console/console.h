// How commands talk: tables on stdout, progress on stderr (only on a terminal), whole files.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "shared/files/whole.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {

// Columns as wide as their widest cell; text to the left, numbers (cells that begin with a digit,
// sign or ~) to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// One line on stderr that rewrites itself, when stderr is a terminal, with the time left; silent
// otherwise. Cleared at the end.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  void show(double share, const std::string& detail = "");

 private:
  std::string label_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace polyphony::sim
