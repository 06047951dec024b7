#include "sim/text/csv.h"

#include <algorithm>
#include <cmath>

#include "shared/text/number_text.h"

namespace polyphony::sim {
namespace {

std::string trimmed(const std::string& text) {
  const char* space = " \t\r";
  const auto begin = text.find_first_not_of(space);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

[[noreturn]] void refuse_line(const std::string& file, std::size_t line, const std::string& what,
                              const std::string& hint) {
  throw InputError(file, "line " + std::to_string(line), what, hint);
}

// Splits the text into records, one per call of next().
class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  bool next(CsvTable::Line& line) {
    while (at_ < text_.size()) {
      line = {number_, {}};
      bool last = false;
      while (!last) line.cells.push_back(cell(last));
      if (line.cells.size() > 1 || !line.cells[0].empty()) return true;
    }
    return false;
  }

 private:
  std::string cell(bool& last) {
    std::string value;
    bool quoted = false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"' && trimmed(value).empty() && !quoted) {
        value = quoted_text();
        quoted = true;
      } else if (c == ',') {
        return quoted ? value : trimmed(value);
      } else if (c == '\n') {
        ++number_;
        last = true;
        return quoted ? value : trimmed(value);
      } else if (!quoted) {
        value += c;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        std::string what = "\"";  // built in steps: GCC 12 warns of a sum of texts here
        what += c;
        what += "\" follows a closing quote";
        refuse_line(file_, number_, what, "double the quotes inside a quoted cell");
      }
    }
    last = true;
    return quoted ? value : trimmed(value);
  }

  std::string quoted_text() {
    const std::size_t opened = number_;
    std::string value;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\n') ++number_;
      if (c != '"') {
        value += c;
      } else if (at_ < text_.size() && text_[at_] == '"') {
        value += text_[at_++];
      } else {
        return value;
      }
    }
    refuse_line(file_, opened, "a quote is never closed", "close it, or double it");
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0, number_ = 1;
};

}  // namespace

CsvTable read_csv(const std::string& text, const std::string& file) {
  CsvTable table;
  table.file = file;
  Reader reader(text, file);
  CsvTable::Line line;
  if (!reader.next(line)) throw InputError(file, "", "is empty", "give a header line and rows");
  table.columns = line.cells;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string& name = table.columns[c];
    if (name.empty())
      refuse_line(file, line.number, "column " + std::to_string(c + 1) + " has no name",
                  "name it, or drop the comma");
    if (std::count(table.columns.begin(), table.columns.end(), name) > 1)
      refuse_line(file, line.number, "column " + name + " appears twice", "drop one of them");
  }
  while (reader.next(line)) {
    if (line.cells.size() != table.columns.size())
      refuse_line(file, line.number,
                  std::to_string(line.cells.size()) + " cells, but the header has " +
                      std::to_string(table.columns.size()) + " columns",
                  "quote cells that hold commas");
    table.lines.push_back(line);
  }
  return table;
}

std::string CsvRow::text(const std::string& column) const {
  const auto found = std::find(table_->columns.begin(), table_->columns.end(), column);
  if (found == table_->columns.end()) return {};
  return line_->cells[static_cast<std::size_t>(found - table_->columns.begin())];
}

std::optional<double> CsvRow::number(const std::string& column) const {
  const std::string value = text(column);
  if (value.empty()) return std::nullopt;
  const std::optional<double> number = number_of(value);
  if (!number)
    refuse(column, "\"" + value + "\" is not a number", "write only digits, such as 4096");
  return number;
}

std::optional<int> CsvRow::integer(const std::string& column) const {
  const std::optional<double> value = number(column);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || *value < 0 || *value > 1e9)
    refuse(column, "\"" + text(column) + "\" is not a count", "write a whole number, 0 or more");
  return static_cast<int>(*value);
}

std::optional<bool> CsvRow::boolean(const std::string& column) const {
  const std::string value = text(column);
  if (value.empty()) return std::nullopt;
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  refuse(column, "\"" + value + "\" is not a boolean", "write 1 or 0, true or false");
}

void CsvRow::refuse(const std::string& column, const std::string& what,
                    const std::string& hint) const {
  throw InputError(table_->file, "line " + std::to_string(line_->number) + ", column " + column,
                   what, hint);
}

}  // namespace polyphony::sim
