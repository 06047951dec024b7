// polyphony why: prints where the time of a layout goes, and which single changes are worth trying.
#include <algorithm>
#include <iostream>

#include "shared/check/check.h"
#include "shared/files/free_memory.h"
#include "shared/scenario/typical_batch.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/what_if.h"
#include "sim/console/console.h"
#include "sim/frameworks/target_change.h"
#include "sim/shown/headline.h"
#include "sim/shown/profile_text.h"
#include "sim/shown/sweep_text.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kWords = 36;      // columns of a change, so that a row fits in 80
constexpr double kWorthALine = 0.0005;  // of a step: more than "0.0 %"

void print_times(const WhyAnswer& answer) {
  const StepAnswer& now = answer.now;
  const Rank critical = now.busiest;
  const traces::PartTimes part_mean = traces::mean(now.parts);
  const traces::IdleTimes idle_mean = traces::mean(answer.idle);
  Table table({"part", "critical rank: " + std::to_string(critical.value), "share", "mean of ranks",
               "share"});
  const auto add = [&](const std::string& what, Seconds here, Seconds mean) {
    table.add({what, seconds_text(here), percent_text(here / now.figures.step), seconds_text(mean),
               percent_text(mean / now.figures.step)});
  };
  for (const traces::Part part :
       {traces::Part::forward, traces::Part::backward, traces::Part::recompute,
        traces::Part::optimizer, traces::Part::idle}) {
    const auto p = static_cast<std::size_t>(part);
    if (part == traces::Part::recompute && part_mean[p] == Seconds{}) continue;
    const bool twofold = part == traces::Part::backward && now.recomputes;
    add(traces::table_name(part) + std::string(twofold ? " and recomputation" : ""),
        now.parts[critical.value][p], part_mean[p]);
  }
  const Seconds least = kWorthALine * now.figures.step;
  for (std::size_t i = 0; i < traces::kIdles; ++i)
    if (std::max(idle_mean[i], answer.idle[critical.value][i]) > least)
      add(std::string("  ") + traces::name(static_cast<traces::Idle>(i)),
          answer.idle[critical.value][i], idle_mean[i]);
  std::cout << table.text(screen_columns()) << "\n";
}

void print_memory(const StepAnswer& now) {
  const Figures& figures = now.figures;
  const auto& at_peak = now.prediction.memory[figures.worst_rank.value].at_peak;
  const auto at = [&](BufferKind kind) { return at_peak[static_cast<std::size_t>(kind)]; };
  const std::string text =
      "Memory: " + memory_of_device(figures.peak_memory, figures.device_memory) + " on " +
      figures.worst_stage + ": parameters " + bytes_text(at(BufferKind::parameter)) +
      ", gradients " + bytes_text(at(BufferKind::gradient)) + ", optimizer " +
      bytes_text(at(BufferKind::optimizer)) + ", activations " +
      bytes_text(at(BufferKind::tape) + at(BufferKind::workspace)) + ", stage inputs " +
      bytes_text(at(BufferKind::boundary) + at(BufferKind::boundary_gradient));
  std::cout << paragraph(text) << "\n";
}

// Lines of at most kWords columns, cut between changes.
std::vector<std::string> lines_of(const std::vector<std::string>& words) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (!lines.empty() && lines.back().size() + 2 + word.size() <= kWords)
      lines.back() += ", " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

void print_changes(const WhyAnswer& answer, const Scenario& scenario) {
  const std::string among =
      counted(static_cast<std::int64_t>(answer.looked_at), "change", "changes") + " tried, " +
      count_text(static_cast<std::int64_t>(answer.fitting)) + " of them fit";
  if (answer.worth_trying.empty()) {
    std::cout << "No single change is faster and fits (" << among << ").\n";
    return;
  }
  Table table({"worth trying", "gain", "P(faster)", "step", "memory"});
  for (const WorthTrying& change : answer.worth_trying) {
    const std::vector<std::string> lines = lines_of(change.words);
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (i == 0)
        table.add({lines[i], percent_text(change.gain), percent_text(change.certainty, 0),
                   "~" + seconds_text(change.step), bytes_text(change.peak_memory)});
      else
        table.add({"  " + lines[i], "", "", "", ""});
  }
  const std::string text =
      among +
      "; what a change needs besides is changed with it. P(faster): probability "
      "of being faster at all, from the profile's stated errors. ~: "
      "estimated (longest path); by the same estimate this layout takes " +
      seconds_text(answer.estimate) + ". " +
      margin_text(scenario, "search.memory_margin", answer.now.figures.library_memory) + ".";
  std::cout << table.text(screen_columns()) << paragraph(text);
}

void print_settings(const WhyAnswer& answer, const std::string& framework) {
  std::cout << "\nThe same in " << framework << "'s settings:\n";
  for (const WorthTrying& change : answer.worth_trying) {
    std::string words, settings;
    for (const std::string& word : change.words) words += (words.empty() ? "" : ", ") + word;
    for (const std::string& setting : change.settings)
      settings += (settings.empty() ? "" : "  ") + setting;
    std::cout << "  " << wrapped(words, screen_columns() - 2, 4) << "\n      "
              << wrapped(settings.empty() ? "no setting: the framework decides it" : settings,
                         screen_columns() - 6, 6)
              << "\n";
  }
}

}  // namespace

int why_command(int argc, char** argv) {
  Arguments args("why",
                 "Where the time of the scenario's layout goes, and which single changes of it are "
                 "worth trying.",
                 "SCENARIO",
                 "  polyphony why scenarios/rehearse_8.json\n  polyphony why "
                 "scenarios/rehearse_8.json --set cluster.node.link=1GBps\n  polyphony sweep "
                 "scenarios/vlm_12b_70b_h100.json --save runs/best && polyphony why "
                 "runs/best/non-colocated.json");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "estimate", "estimate by the longest path instead of SimGrid: faster, without contention")(
      "jobs", "threads; 0: one per core", cxxopts::value<int>()->default_value("0"))(
      "for",
      "also the changes in the settings of a framework: megatron-lm, megatron-bridge, torchtitan, "
      "ms-swift; of a version of it: torchtitan@0.2.2",
      cxxopts::value<std::string>(), "FRAMEWORK");
  args.add_profile();
  args.add_overrides();
  args.add_phase();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<Override> overrides = args.overrides();
  std::optional<TargetVersion> target;
  if (args.has("for")) target = parse_target(args.text("for"));
  const Scenario scenario = open_scenario(args, overrides);
  const Layout& layout = require_layout(scenario);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  const Predictor predictor = args.has("estimate") ? Predictor::estimate : Predictor::simulate;
  require_memory(scenario, layout, {.predictor = predictor});
  auto outcome = [&] {
    Progress progress("why");
    return answer_why(scenario, layout, typical_batch(scenario), profile,
                      {.predictor = predictor,
                       .jobs = args.jobs(),
                       .memory = free_memory(),
                       .cores = cores_here(),
                       .progress = [&](double share) { progress.show(share, "changes"); }});
  }();
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
  auto& answer = std::get<WhyAnswer>(outcome);
  if (target) {
    const Emitted before = emit_planned(scenario, layout, profile, *target);
    for (WorthTrying& change : answer.worth_trying)
      change.settings =
          changed_settings(before, emit_planned(scenario, change.layout, profile, *target));
  }
  std::optional<WhatIf> what_if;
  if (!overrides.empty())
    what_if = {texts_of(overrides),
               answer_unchanged(args, {.predictor = predictor, .cores = cores_here()}),
               answer.now.figures};
  if (args.json()) {
    nlohmann::json json = to_json(answer, scenario.model);
    if (what_if) json.update(to_json(*what_if));
    std::cout << json.dump(2) << "\n";
  } else {
    const SecondsInterval bounds = interval(answer.now.belief);
    std::cout << headline(scenario, profile)
              << paragraph(layout_words(scenario.model, layout, scenario.cluster)) << "\nstep "
              << seconds_text(answer.now.figures.step) << "   90 % interval "
              << seconds_text(bounds.low) << " to " << seconds_text(bounds.high) << "\n"
              << paragraph("Interval: by " + describe(profile) + ". " + footing_text(profile))
              << "\n";
    print_times(answer);
    print_memory(answer.now);
    print_changes(answer, scenario);
    if (target && !answer.worth_trying.empty()) print_settings(answer, target_text(*target));
    if (what_if) std::cout << "\n" << side_by_side(*what_if);
    std::cout.flush();
  }
  print_notes(scenario, answer.notes);
  if (answer.now.out_of_memory.empty()) return 0;
  std::cerr << scenario.file << ": " << answer.now.out_of_memory << "\n";
  return static_cast<int>(ExitCode::infeasible);
}

}  // namespace polyphony::sim
