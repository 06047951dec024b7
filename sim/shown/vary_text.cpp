#include "sim/shown/vary_text.h"

#include <algorithm>
#include <limits>

#include "sim/console/console.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

Seconds step_of(const Asked& asked) {
  if (asked.answer.ranked.empty()) return Seconds(std::numeric_limits<double>::infinity());
  return asked.answer.ranked.front().figures.step;
}

}  // namespace

std::string vary_text(const Varied& varied, bool layouts) {
  std::vector<std::string> header;
  for (const Variation& variation : varied.variations) header.push_back(variation.path);
  for (const char* column :
       {"step time", layouts ? "compared with\nthe fastest" : "compared with\nhomogeneous",
        "memory"})
    header.emplace_back(column);
  Table table(header);
  std::vector<std::string> words;
  std::vector<const Asked*> rows;
  for (const Asked& asked : varied.asked) rows.push_back(&asked);
  if (layouts)
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Asked* a, const Asked* b) { return step_of(*a) < step_of(*b); });
  for (const Asked* asked : rows) {
    std::vector<std::string> row = asked->values;
    if (asked->answer.ranked.empty()) {
      row.insert(row.end(), {"-", "", ""});
      words.push_back(asked->why_not);
    } else {
      const Candidate& best = asked->answer.ranked.front();
      const Candidate* one = layouts ? &rows.front()->answer.ranked.front()
                                     : best_of(asked->answer, Placement::homogeneous);
      row.insert(row.end(), {seconds_text(best.figures.step),
                             one ? percent_text(best.figures.step / one->figures.step - 1, 1) : "",
                             bytes_text(best.figures.needed_memory())});
      words.push_back(layout_words(asked->model, best.layout, asked->answer.ranks));
    }
    table.add(row);
  }
  return table.text_with("layout", words, screen_columns());
}

std::string placements_text(const Varied& varied) {
  const std::vector<Variation>& variations = varied.variations;
  const std::vector<Asked>& all = varied.asked;
  if (variations.size() != 2 ||
      all.size() != variations[0].values.size() * variations[1].values.size())
    return "";
  std::vector<std::string> header{variations[0].path + " \\ " + variations[1].path};
  header.insert(header.end(), variations[1].values.begin(), variations[1].values.end());
  Table map(header);
  for (std::size_t i = 0; i < all.size(); i += variations[1].values.size()) {
    std::vector<std::string> row{all[i].values[0]};
    for (std::size_t j = 0; j < variations[1].values.size(); ++j) {
      const Sweep& answer = all[i + j].answer;
      row.emplace_back(answer.ranked.empty() ? "-" : name(answer.ranked.front().layout.placement));
    }
    map.add(row);
  }
  return "\nplacement of the best layout:\n" + map.text(screen_columns());
}

}  // namespace polyphony::sim
