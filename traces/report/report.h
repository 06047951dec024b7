// One self-contained page: headline facts, sections of text, tables and pictures. Opens offline,
// follows the reader's light or dark theme (a button switches), scales to phones and prints. All
// text is escaped; pictures must come from svg.h. What a run of the product shows is put together
// by report_parts.h.
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
  std::vector<std::string> columns;            // the first and the last `texts` left-aligned
  std::vector<std::vector<std::string>> rows;  // as many cells as columns, or fewer
  std::optional<std::size_t> highlight{};      // a row
  std::string note;
  std::size_t texts = 0;
};
struct Figure {
  std::string svg;
  std::string caption;
  std::string narrow{};  // the same for a phone; empty: `svg` shrinks
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

std::string to_html(const Report& report);

}  // namespace polyphony::traces
