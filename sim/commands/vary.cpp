#include "sim/commands/vary.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "sim/answer_json/answers_json.h"
#include "sim/console/console.h"
#include "sim/pages/sweep_page.h"
#include "sim/shown/sweep_csv.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kMostQuestions = 256;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw InputError("--vary " + text, "", why,
                   "PATH=A,B,C or PATH=A..B, such as cluster.nic=200Gbps..1600Gbps");
}

// "200Gbps": 200 and "Gbps".
std::pair<double, std::string> number_and_unit(const std::string& text, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end == value.c_str() || !(number > 0))
    refuse(text, "\"" + value + "\" is no number above 0: the ends of a range must be");
  return {number, end};
}

std::vector<std::string> range_of(const std::string& text, const std::string& from,
                                  const std::string& to) {
  const auto [least, unit] = number_and_unit(text, from);
  const auto [most, other] = number_and_unit(text, to);
  if (unit != other) refuse(text, "\"" + unit + "\" and \"" + other + "\" are different units");
  std::vector<std::string> values;
  for (double value = least; value <= most * (1 + 1e-9) && values.size() <= kMostQuestions;
       value *= 2)
    values.push_back(
        number_text(value, value == static_cast<double>(static_cast<long>(value)) ? 0 : 3) + unit);
  return values;
}

Seconds step_of(const Asked& asked) {
  if (asked.answer.ranked.empty()) return Seconds(std::numeric_limits<double>::infinity());
  return asked.answer.ranked.front().figures.step;
}

// `layouts`: the layout is varied, so the rows are ranked.
void print_table(const std::vector<Asked>& all, const std::vector<Variation>& variations,
                 bool layouts) {
  std::vector<std::string> header;
  for (const Variation& variation : variations) header.push_back(variation.path);
  for (const char* column :
       {"step time", layouts ? "compared with\nthe fastest" : "compared with\nhomogeneous",
        "memory"})
    header.emplace_back(column);
  Table table(header);
  std::vector<std::string> words;
  std::vector<const Asked*> rows;
  for (const Asked& asked : all) rows.push_back(&asked);
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
                             bytes_text(best.figures.peak_memory)});
      words.push_back(layout_words(asked->model, best.layout, asked->answer.ranks));
    }
    table.add(row);
  }
  std::cout << table.text_with("layout", words, screen_columns());
}

void print_map(const std::vector<Asked>& all, const std::vector<Variation>& variations) {
  if (variations.size() != 2) return;
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
  std::cout << "\nplacement of the best layout:\n" << map.text(screen_columns());
}

}  // namespace

bool varies_layout(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return text.starts_with("layout."); });
}

Variation parse_variation(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse(text, "is not of the form PATH=VALUES");
  Variation variation{text.substr(0, equals), {}};
  const std::string values = text.substr(equals + 1);
  const std::size_t dots = values.find("..");
  if (dots != std::string::npos) {
    variation.values = range_of(text, values.substr(0, dots), values.substr(dots + 2));
  } else {
    for (std::size_t at = 0; at <= values.size();) {
      const std::size_t comma = std::min(values.find(',', at), values.size());
      if (comma > at) variation.values.push_back(values.substr(at, comma - at));
      at = comma + 1;
    }
  }
  if (variation.values.empty()) refuse(text, "has no value");
  return variation;
}

std::vector<std::vector<std::string>> combinations(const std::vector<Variation>& variations) {
  std::vector<std::vector<std::string>> all{{}};
  for (const Variation& variation : variations) {
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& before : all)
      for (const std::string& value : variation.values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    all = std::move(longer);
  }
  return all;
}

int vary(const Arguments& args, const std::string& path, const std::vector<std::string>& texts,
         const std::vector<Override>& goal, const Answer& answer) {
  Varied varied;
  std::vector<Variation>& variations = varied.variations;
  std::size_t questions = 1;
  for (const std::string& text : texts) {
    variations.push_back(parse_variation(text));
    questions *= variations.back().values.size();
    if (questions > kMostQuestions)
      refuse(text, "makes more than " + std::to_string(kMostQuestions) + " questions");
  }
  std::vector<Asked>& all = varied.asked;
  const bool layouts = varies_layout(texts);
  bool any = false;
  for (const std::vector<std::string>& values : combinations(variations)) {
    std::vector<Override> overrides = goal;
    for (const Override& override : args.overrides()) overrides.push_back(override);
    for (std::size_t i = 0; i < values.size(); ++i)
      overrides.push_back(parse_override(variations[i].path + "=" + values[i]));
    Asked asked{values, "", {}, {}};
    bool stopped = false;
    try {
      Scenario scenario = read_scenario_file(path, overrides);
      read_samples(scenario);
      asked.model = scenario.model;
      const GoalSweep found = answer(scenario, load_profile(scenario, args.profile(), overrides));
      asked.answer = found.best().sweep;
      stopped = found.stopped;
      if (asked.answer.ranked.empty())
        asked.why_not = layouts && !asked.answer.failed.empty() ? asked.answer.failed.front()
                                                                : "no layout fits";
    } catch (const InputError& error) {
      if (!layouts) throw;
      asked.why_not = error.what();  // one of the layouts is not legal: others may be
    }
    any = any || !asked.answer.ranked.empty();
    all.push_back(std::move(asked));
    if (stopped) {
      std::cerr << "stopped after " << all.size() << " of " << questions << " questions\n";
      break;
    }
  }
  if (args.json()) {
    std::cout << to_json(varied).dump(2) << "\n";
  } else if (args.csv()) {
    std::cout << csv_text(varied);
  } else {
    print_table(all, variations, layouts);
    if (all.size() == questions && !layouts) print_map(all, variations);
  }
  std::cout.flush();
  if (args.has("json-out")) write_file(args.text("json-out"), to_json(varied).dump(2) + "\n");
  if (args.has("report"))
    write_file(args.text("report"), traces::to_html(answer_page(to_json(varied), path)));
  if (all.size() < questions) return static_cast<int>(ExitCode::failed);
  return static_cast<int>(any ? ExitCode::ok : ExitCode::infeasible);
}

}  // namespace polyphony::sim
