// Reads comma-separated text with a header line (RFC 4180). Quoted cells may contain commas, line
// breaks and doubled quotes. A byte-order mark, carriage returns before line feeds, and blank lines
// are skipped; white space around unquoted cells is removed.
//
// Errors are InputErrors that name the file, the line and the column: "line 7, column seq".
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
    std::size_t number = 0;  // line number of its first character in the file, from 1
    std::vector<std::string> cells;
  };
  std::vector<Line> lines;
};
// Returns the parsed table; `file` is the name used in errors. Throws InputError for an unclosed
// quote, text after a closing quote, a line with more or fewer cells than the header, and a header
// with an empty or repeated name.
CsvTable read_csv(const std::string& text, const std::string& file);

// Gives access to one line by column name. A column that the file does not have reads as blank.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, const CsvTable::Line& line) : table_(&table), line_(&line) {}
  std::string text(const std::string& column) const;
  // Each returns nullopt for a blank cell and throws InputError for text of another type.
  std::optional<double> number(const std::string& column) const;
  std::optional<int> integer(const std::string& column) const;   // 0 to 1e9
  std::optional<bool> boolean(const std::string& column) const;  // 0, 1, true, false
  // Throws an InputError that names this file, line and column.
  [[noreturn]] void refuse(const std::string& column, const std::string& what,
                           const std::string& hint) const;
  std::size_t line() const { return line_->number; }

 private:
  const CsvTable* table_;
  const CsvTable::Line* line_;
};

}  // namespace polyphony::sim
