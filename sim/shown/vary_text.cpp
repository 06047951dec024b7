#include "sim/shown/vary_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/console/console.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

Seconds step_of(const Asked& asked) {
  if (asked.answer.ranked.empty()) return Seconds(std::numeric_limits<double>::infinity());
  return asked.answer.ranked.front().figures.step;
}

// Whether the best layout of some question has the encoder and the language module on other ranks,
// or in other grids.
bool any_apart(const Varied& varied) {
  return std::any_of(varied.asked.begin(), varied.asked.end(), [](const Asked& asked) {
    return !asked.answer.ranked.empty() &&
           asked.answer.ranked.front().layout.placement != Placement::homogeneous;
  });
}

}  // namespace

std::string vary_text(const Varied& varied, bool layouts) {
  const bool apart = !layouts && any_apart(varied);
  std::vector<std::string> header;
  for (const Variation& variation : varied.variations) header.push_back(variation.path);
  header.emplace_back("step time");
  header.emplace_back(layouts ? "compared with\nthe fastest" : "compared with\nthe first row");
  if (apart) header.emplace_back("compared with\nthe best\nhomogeneous");
  header.emplace_back("memory");
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
      row.emplace_back("-");
      row.resize(header.size());
      words.push_back(asked->why_not);
    } else {
      const Candidate& best = asked->answer.ranked.front();
      const auto beyond = [&](Seconds other) {
        return std::isfinite(other.count()) ? percent_text(best.figures.step / other - 1, 1) : "";
      };
      row.push_back(seconds_text(best.figures.step));
      row.push_back(beyond(step_of(*rows.front())));
      if (apart) {
        const Candidate* one = best_of(asked->answer, Placement::homogeneous);
        row.push_back(one ? beyond(one->figures.step) : "");
      }
      row.push_back(bytes_text(best.figures.needed_memory()));
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
