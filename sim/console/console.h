// How commands print: tables and wrapped text on stdout, progress on stderr, whole files.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "shared/files/whole.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {

// Columns that stdout has: those of its terminal; elsewhere of the variable COLUMNS, or 80.
std::size_t screen_columns();

// Characters on the screen of UTF-8 text.
std::size_t width_of(const std::string& text);
// Breaks text at spaces so that no line is longer than `columns` (a longer word stays whole), but
// not between a number and its unit. Lines after the first begin with `indent` spaces. No line
// break at the end.
std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent = 0);
// Returns a line for stderr, with a line break: wrapped if stderr is a terminal, else whole, so
// that scripts find one line.
std::string message_line(const std::string& text);
// Breaks text to the columns of the screen, further lines indented by two, and ends with a line
// break.
std::string paragraph(const std::string& text);

// Columns as wide as their widest cell; text to the left, numbers (cells that begin with a digit, a
// sign or ~) to the right. A line break in a header cell makes the header several lines high.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // One table, however wide.
  std::string text() const;
  // At most `columns` wide: further columns go to more tables, each with the first column again and
  // without the rows that have no text there.
  std::string text(std::size_t columns) const;
  // Each row with a long text (`texts`, one a row): at its end under the heading `title` where all
  // fit into `columns`, else on indented lines of its own.
  std::string text_with(const std::string& title, const std::vector<std::string>& texts,
                        std::size_t columns) const;

 private:
  std::vector<std::size_t> widths() const;
  // The lines of the header, its rule and a line a row, of these columns.
  std::vector<std::string> lines(const std::vector<std::size_t>& columns) const;

  std::vector<std::vector<std::string>> rows_;
};

// Progress on stderr with the time left. On a terminal one line that rewrites itself and is cleared
// at the end; elsewhere (a file, a batch job's log) a line every ten seconds.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  void show(double share, const std::string& detail = "");

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point begun_ = Clock::now(), printed_ = begun_;
};

}  // namespace polyphony::sim
