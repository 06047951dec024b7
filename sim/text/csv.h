// Comma-separated text with a header line (RFC 4180): quoted cells may hold commas, line breaks and
// doubled quotes; a byte-order mark, CRLF and blank lines are skipped. Cells are trimmed text.
// Errors name file, line and column: an InputError whose pointer is "line 7, column seq".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/error.h"

namespace polyphony::sim {

class CsvRow;

struct CsvTable {
  std::string file;
  std::vector<std::string> columns;
  struct Line {
    std::size_t number = 0;  // of its first character, in the file
    std::vector<std::string> cells;
  };
  std::vector<Line> lines;
};
// Refuses an unclosed quote, text after a closing quote, a line with more or fewer cells than the
// header, and a header with an empty or repeated name.
CsvTable read_csv(const std::string& text, const std::string& file);

// One line by column name; a column that the file lacks is blank everywhere.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, const CsvTable::Line& line) : table_(&table), line_(&line) {}
  std::string text(const std::string& column) const;
  std::optional<double> number(const std::string& column) const;  // refuses what is none
  std::optional<int> integer(const std::string& column) const;
  std::optional<bool> boolean(const std::string& column) const;  // 0, 1, true, false
  [[noreturn]] void refuse(const std::string& column, const std::string& what,
                           const std::string& hint) const;
  std::size_t line() const { return line_->number; }

 private:
  const CsvTable* table_;
  const CsvTable::Line* line_;
};

}  // namespace polyphony::sim
