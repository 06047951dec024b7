#include "sim/cli/sweep_answer.h"

#include <algorithm>
#include <iostream>

#include "shared/files/whole.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/journal.h"
#include "sim/cli/sweep_options.h"
#include "sim/console/console.h"
#include "sim/console/failure.h"
#include "sim/console/signal_counter.h"
#include "sim/pages/sweep_page.h"
#include "sim/shown/goal_text.h"
#include "sim/shown/headline.h"
#include "sim/shown/sweep_csv.h"
#include "sim/shown/sweep_text.h"

namespace polyphony::sim {
namespace {

void print(const GoalSweep& found, const Scenario& scenario, const HardwareProfile& profile,
           const QuestionWords& asked, const std::optional<WhatIf>& what_if,
           const Arguments& args) {
  const Sweep& result = found.best().sweep;
  std::cout << headline(asked);
  print_goal(found);
  print_counts(result, args.has("details"));
  print_notes(scenario, result.notes);
  if (result.ranked.empty()) {
    if (!result.stopped) std::cerr << scenario.file << ": no layout fits; the reasons are above\n";
    return;
  }
  print_ranking(scenario, profile, result,
                {static_cast<std::size_t>(std::max(1, args.integer("top"))), args.has("all"),
                 args.has("wide"), args.has("details")});
  if (!what_if) return;
  std::cout << "\n" << side_by_side(*what_if);
  if (what_if->unchanged.figures)
    std::cout << "best without the changes: " << what_if->unchanged.layout << "\n";
}

int exit_code(const GoalSweep& answer) {
  if (answer.stopped) return static_cast<int>(ExitCode::failed);
  return static_cast<int>(answer.reached.empty() ? ExitCode::infeasible : ExitCode::ok);
}

}  // namespace

GoalSweep search_shown(const Arguments& args, const Scenario& scenario,
                       const HardwareProfile& profile, const std::string& label, bool journaled) {
  Progress progress(label);
  SweepOptions options = sweep_options(args);
  KnownAnswers known;
  std::optional<Journal> journal;
  if (journaled && args.has("journal"))
    journal.emplace(args.texts("journal"), question_digest(scenario, profile), known);
  options.stopped = [] { return SignalCounter::seen() > 0; };
  options.known = &known;
  options.progress = [&](double share, const std::string& what) { progress.show(share, what); };
  GoalSweep answer = sweep_for_goal(scenario, profile, options);
  if (answer.stopped)
    for (VariantSweep& of : answer.sweeps)
      of.sweep.notes.emplace_back(
          args.has("journal") ? "the same command with this --journal continues from here"
                              : "with --journal FILE the same command could continue from here");
  return answer;
}

SweepAnswer answer_of(GoalSweep found, const HardwareProfile& profile) {
  SweepAnswer answered{std::move(found), profile, {}, {}};
  answered.asked = question_words(answered.found.best().scenario, profile);
  answered.json = to_json(answered.found);
  answered.json["question"] = to_json(answered.asked);
  return answered;
}

std::string add_target(const Arguments& args, SweepAnswer& answered) {
  const VariantSweep& best = answered.found.best();
  if (!args.has("for") || best.sweep.ranked.empty() || best.sweep.stopped) return "";
  const TargetFound target =
      target_found(best.scenario, answered.profile, best.sweep, parse_target(args.text("for")));
  answered.json["target"] = to_json(target);
  return found_text(target);
}

SweepAnswer answer_sweep(const Arguments& args, const Scenario& written,
                         const HardwareProfile& profile, const std::string& label,
                         const std::function<std::optional<Unchanged>()>& unchanged) {
  SweepAnswer answered = answer_of(search_shown(args, written, profile, label), profile);
  const GoalSweep& found = answered.found;
  const Scenario& scenario = found.best().scenario;
  const Sweep& result = found.best().sweep;
  std::optional<WhatIf> what_if;
  if (unchanged)
    if (const std::optional<Unchanged> before = unchanged())
      what_if = {texts_of(args.overrides()), *before, {}};
  if (what_if && !found.reached.empty())
    what_if->changed = found.candidate(found.reached.front()).figures;
  if (what_if && !result.ranked.empty()) answered.json.update(to_json(*what_if));
  const std::string target = add_target(args, answered);
  if (args.csv())
    std::cout << csv_text(result, scenario.model);
  else if (!args.json())
    print(found, scenario, profile, answered.asked, what_if, args);
  if (!target.empty() && !args.csv() && !args.json()) std::cout << "\n" << paragraph(target);
  return answered;
}

int finish_sweep(const Arguments& args, const SweepAnswer& answered, const std::string& title,
                 const std::function<void()>& save) {
  const GoalSweep& found = answered.found;
  const Scenario& scenario = found.best().scenario;
  const Sweep& result = found.best().sweep;
  const nlohmann::json& answer = answered.json;
  if (args.json()) std::cout << answer.dump(2) << "\n";
  std::cout.flush();
  const auto write_side_files = [&] {
    if (save) save();
    if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
    if (args.has("report")) {
      Searched shown = searched_of(result, scenario.model);
      shown.question = answered.asked;
      write_file(args.text("report"), traces::to_html(sweep_page(shown, title)));
    }
  };
  if (!args.json()) {
    write_side_files();
    return exit_code(found);
  }
  try {  // stdout has the answer: an error goes to stderr alone
    write_side_files();
  } catch (const InputError& error) {
    return report_failure(error, ExitCode::bad_input, error.what(), false);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(ExitCode::failed);
  }
  return exit_code(found);
}

}  // namespace polyphony::sim
