// How commands talk: tables on stdout, progress on stderr (only on a terminal), numbers as people
// read them, files read and written whole.
#pragma once

#include <string>
#include <vector>

#include "shared/units.h"

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

// One line on stderr that rewrites itself, when stderr is a terminal; silent otherwise. Cleared at
// the end.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  void show(double share, const std::string& detail = "");

 private:
  std::string label_;
  bool terminal_;
  bool shown_ = false;
};

std::string seconds_text(Seconds time);                  // "1.23 s", "45.6 ms", "7.89 us"
std::string bytes_text(Bytes bytes);                     // "71.2 GiB"
std::string percent_text(double share, int digits = 1);  // "12.3 %"
std::string number_text(double value, int digits);
std::string count_text(std::int64_t value);  // "12,345"

// Errors: InputError naming the path.
std::string read_file(const std::string& path);
void write_file(const std::string& path,
                const std::string& text);  // through a temporary name, renamed when whole

}  // namespace polyphony::sim
