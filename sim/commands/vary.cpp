#include "sim/commands/vary.h"

#include <iostream>
#include <optional>

#include "sim/answer_json/answers_json.h"
#include "sim/cli/variations.h"
#include "sim/console/console.h"
#include "sim/pages/sweep_page.h"
#include "sim/shown/headline.h"
#include "sim/shown/sweep_csv.h"
#include "sim/shown/vary_text.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kMostQuestions = 256;

// Keeps the words that a question shares with the earlier ones: what varies is in the table.
void keep_common(std::optional<QuestionWords>& common, const QuestionWords& words) {
  if (!common) common = words;
  for (const auto part : {&QuestionWords::model, &QuestionWords::cluster, &QuestionWords::data,
                          &QuestionWords::software})
    if ((*common).*part != words.*part) ((*common).*part).clear();
}

}  // namespace

int vary(const Arguments& args, const std::string& path, const std::vector<std::string>& texts,
         const std::vector<Override>& goal, const Answer& answer) {
  Varied varied;
  varied.variations = parse_variations(texts, kMostQuestions);
  const std::vector<std::vector<std::string>> questions = combinations(varied.variations);
  std::vector<Asked>& all = varied.asked;
  const bool layouts = varies_layout(texts);
  std::optional<QuestionWords> common;
  bool any = false;
  for (const std::vector<std::string>& values : questions) {
    std::vector<Override> overrides = goal;
    for (const Override& override : args.overrides()) overrides.push_back(override);
    for (const Override& override : overrides_of(varied.variations, values))
      overrides.push_back(override);
    Asked asked{values, "", {}, {}};
    bool stopped = false;
    try {
      Scenario scenario = read_scenario_file(path, overrides, args.phase());
      read_samples(scenario);
      asked.model = scenario.model;
      const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
      keep_common(common, question_words(scenario, profile));
      const GoalSweep found = answer(scenario, profile);
      asked.answer = found.best().sweep;
      stopped = found.stopped;
      if (asked.answer.ranked.empty())
        asked.why_not = layouts && !asked.answer.failed.empty() ? asked.answer.failed.front()
                                                                : "no layout fits";
      else if (asked.answer.none_runs)
        asked.why_not = asked.answer.notes.back();
    } catch (const InputError& error) {
      if (!layouts) throw;
      asked.why_not = error.what();  // one of the layouts is not legal: others may be
    }
    any = any || !asked.answer.ranked.empty();
    all.push_back(std::move(asked));
    if (stopped) {
      std::cerr << "stopped after " << all.size() << " of " << questions.size() << " questions\n";
      break;
    }
  }
  if (args.json()) {
    std::cout << to_json(varied).dump(2) << "\n";
  } else if (args.csv()) {
    std::cout << csv_text(varied);
  } else {
    if (common) std::cout << headline(*common) << "\n";
    std::cout << vary_text(varied, layouts);
    if (!layouts) std::cout << placements_text(varied);
  }
  std::cout.flush();
  if (args.has("json-out")) write_file(args.text("json-out"), to_json(varied).dump(2) + "\n");
  if (args.has("report"))
    write_file(args.text("report"), traces::to_html(vary_page(searched_of(varied), path)));
  if (all.size() < questions.size()) return static_cast<int>(ExitCode::failed);
  return static_cast<int>(any ? ExitCode::ok : ExitCode::infeasible);
}

}  // namespace polyphony::sim
