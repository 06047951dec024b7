// A self-contained HTML page: headline facts, and sections of text, tables and figures. It opens
// offline, follows the reader's light or dark theme (a button switches it), and adapts to phones
// and printing. All text is escaped; figures must come from svg.h. report_parts.h builds the parts
// of the report of a run.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace polyphony::traces {

struct Paragraph {
  std::string text;
};
struct Table {
  std::string caption;
  std::vector<std::string> columns;  // the first and the last `texts` columns are left-aligned
  std::vector<std::vector<std::string>> rows;  // at most as many cells as columns
  std::optional<std::size_t> highlight{};      // index of a highlighted row
  std::string note;
  std::size_t texts = 0;
};
struct Figure {
  std::string svg;
  std::string caption;
  std::string narrow{};  // version for phones; empty: `svg` is scaled down
};
struct SideBySide {
  std::vector<Figure> figures;  // below each other on narrow screens
};
using Block = std::variant<Paragraph, Table, Figure, SideBySide>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
};
struct Fact {
  std::string value, label;
};
struct Report {
  std::string title, subtitle;
  std::vector<Fact> facts;
  std::vector<Section> sections;
  std::string footer;
};

// Returns the text of the page.
std::string to_html(const Report& report);

}  // namespace polyphony::traces
