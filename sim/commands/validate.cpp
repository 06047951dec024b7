// polyphony validate: predicts published measurements, and prints the errors.
#include <iostream>

#include "shared/check/check.h"
#include "shared/text/json_form.h"
#include "shared/text/number_text.h"
#include "shared/text/strict_json.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/judged/held_out.h"
#include "sim/judged/summary.h"
#include "sim/judged/validation_json.h"
#include "sim/published/scenarios.h"
#include "sim/shown_runs/coverage_text.h"
#include "sim/shown_runs/validation_text.h"

namespace polyphony::sim {
namespace {

Overrides read_overrides(const std::vector<std::string>& texts) {
  Overrides overrides;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    const std::optional<double> value =
        number_of(equals == std::string::npos ? "" : text.substr(equals + 1));
    if (!value)
      throw InputError("--set", "", "\"" + text + "\" is not of the form NAME.KEY=VALUE",
                       "such as h100.gemm_efficiency=0.7");
    overrides[text.substr(0, equals)] = *value;
  }
  check_overrides(overrides);
  return overrides;
}

// Reads the CSV files among these; prints the columns that are not read.
std::vector<PublishedRow> read_rows(const std::vector<std::string>& files) {
  std::vector<PublishedRow> rows;
  for (const std::string& file : files) {
    if (file.ends_with(".json")) continue;
    std::vector<std::string> unknown;
    add_published(read_file(file), file, rows, unknown);
    for (const std::string& column : unknown)
      std::cerr << file << ": note: column " << column << " is not read\n";
  }
  return rows;
}

struct Results {
  std::vector<RowResult> rows;
  std::optional<HeldOut> held_out;
  std::vector<std::string> checked;  // sentences about scenarios without published values
};

// Returns a sentence about a scenario with phases, all of which are valid; empty if it has none.
// Throws InputError if a phase, or its layout, is not valid.
std::string check_phases(const std::string& file, const std::string& text) {
  std::vector<std::string> names;
  for (const TrainingPhase& phase : read_phases_file(file)) {
    names.push_back(phase.name);
    if (!phase.scenario.layout) continue;
    if (const auto no = check_layout(phase.scenario, *phase.scenario.layout))
      throw InputError(file, "/layout", "in phase \"" + phase.name + "\": " + no->reason,
                       "`polyphony sweep` lists the legal layouts");
  }
  if (names.empty()) return "";
  if (JsonValue::parse(text, file).has("published"))
    throw InputError(file, "/published", "is of one layout, but the scenario has phases",
                     "state it in a scenario without phases");
  return file + ": the phases " + joined(names) + " are valid";
}

Results run_files(const std::vector<std::string>& files, const Overrides& overrides) {
  const std::vector<PublishedRow> rows = read_rows(files);
  Progress progress("predicting");
  Results results;
  results.rows = run_published(rows, overrides, [&](double share) { progress.show(share); });
  for (const std::string& file : files) {
    if (!file.ends_with(".json")) continue;
    progress.show(1, file);
    const std::string text = read_file(file);
    if (is_held_out(text, file)) {
      results.held_out = read_held_out(text, file);
      continue;
    }
    if (const std::string checked = check_phases(file, text); !checked.empty()) {
      results.checked.push_back(checked);
      continue;
    }
    for (RowResult& result : run_scenario(text, file, open_scenario(file), overrides))
      results.rows.push_back(std::move(result));
  }
  fit_naive(results.rows);
  return results;
}

}  // namespace

int validate_command(int argc, char** argv) {
  Arguments args(
      "validate",
      "Predicts published measurements and prints the errors by block of rows (the id up to its "
      "first \"_\"). Of a scenario with phases it checks each phase.",
      "FILE...",
      "  polyphony validate scenarios/published/*.csv scenarios/published/*.json\n"
      "  polyphony validate mine.csv --rows               every row's error\n"
      "  polyphony validate mine.csv --format json        id, predicted, reason\n"
      "Columns: scenarios/published/README.md");
  args.add()("files",
             "rows of published measurements (CSV), scenarios with published values and held-out "
             "errors (JSON)",
             cxxopts::value<std::vector<std::string>>())("rows", "print every row's error")(
      "set", "replace a profile's number: h100.gemm_efficiency=0.7, fsdp.traffic=0.6",
      cxxopts::value<std::vector<std::string>>())(
      "fit-smallest",
      "instead print by how much one step time, of each family's smallest run, corrects the "
      "others; "
      "needs held_out.json among the files");
  args.positional({"files"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<std::string> files = args.texts("files");
  if (files.empty())
    throw InputError("polyphony validate", "", "needs a file",
                     "polyphony validate scenarios/published/*.csv");
  const Overrides overrides = read_overrides(args.texts("set"));
  const Results results = run_files(files, overrides);
  if (args.has("fit-smallest")) {
    if (!results.held_out || !results.held_out->widths || !overrides.empty())
      throw InputError("--fit-smallest", "", "needs the errors of held-out rows",
                       "add scenarios/published/held_out.json, and use no --set");
    const std::vector<SmallestFit> fits = fit_smallest(results.rows, *results.held_out);
    if (args.json())
      std::cout << to_json(fits).dump(1) << "\n";
    else
      print_smallest(fits);
    return 0;
  }
  if (!args.json())
    for (const std::string& sentence : results.checked) std::cout << sentence << "\n";
  if (!args.json() && results.rows.empty() && !results.checked.empty()) return 0;
  const std::vector<BlockSummary> summaries = summarize_blocks(results.rows);
  if (args.json()) {
    std::cout << to_json(results.rows, summaries, results.held_out).dump(1) << "\n";
    return 0;
  }
  if (args.has("rows")) std::cout << every_row_text(results.rows);
  std::cout << summary_text(summaries, results.held_out) << memory_stacks_text(results.rows)
            << parts_text(summarize_parts(results.rows));
  print_coverage(claims_of(results.rows, results.held_out));
  print_reliability(judge_pairs(results.rows, results.held_out));
  std::cout << left_out_text(results.rows, summaries);
  return 0;
}

}  // namespace polyphony::sim
