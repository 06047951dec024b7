// polyphony validate: predicts published measurements, and prints the errors.
#include <iostream>

#include "shared/text/number_text.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/judged/held_out.h"
#include "sim/judged/summary.h"
#include "sim/judged/validation_json.h"
#include "sim/published/scenarios.h"
#include "sim/shown/coverage_text.h"

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

// Of blocks that the fit saw: "fit, all" would read as a proof.
struct Unseen {
  std::string family_out, scale_out;
};
Unseen unseen_of(const BlockSummary& summary, const std::optional<HeldOut>& held_out) {
  if (summary.memory || !held_out) return {};
  const auto block = held_out->blocks.find(summary.block);
  if (block == held_out->blocks.end()) return {"not fitted", "not fitted"};
  const auto text = [](const std::optional<Errors>& errors) {
    return errors ? percent_text(errors->mean) : std::string();
  };
  return {text(block->second.family_out), text(block->second.scale_out)};
}

void add_group(Table& table, const BlockSummary& summary, const Group& group,
               const std::string& kind, const std::optional<HeldOut>& held_out) {
  if (group.ours.count == 0) return;
  const Errors& ours = group.ours;
  const bool complete = kind == "complete" || summary.complete.ours.count == 0;
  const Unseen unseen = complete ? unseen_of(summary, held_out) : Unseen{};
  table.add({summary.block, summary.memory ? "memory" : "time", kind, std::to_string(ours.count),
             percent_text(ours.mean), percent_text(ours.median), signed_percent_text(ours.worst),
             signed_percent_text(ours.bias),
             complete && summary.tau ? number_text(*summary.tau, 2) : "",
             complete && summary.regret ? percent_text(*summary.regret) : "",
             group.naive.count ? percent_text(group.naive.mean) : "", unseen.family_out,
             unseen.scale_out});
}

void print_table(const std::vector<BlockSummary>& summaries,
                 const std::optional<HeldOut>& held_out) {
  Table table({"block", "of", "rows", "n", "mean", "median", "worst", "bias", "tau", "regret",
               "naive", "family out", "scale out"});
  for (const BlockSummary& summary : summaries) {
    add_group(table, summary, summary.complete, "complete", held_out);
    add_group(table, summary, summary.assumed, "assumed", held_out);
  }
  std::cout
      << table.text()
      << "\nErrors are of step times and bytes, predicted over measured less 1; duplicates and "
         "outliers left out. tau: Kendall's, mean over families of 5 layouts\nor more. regret: "
         "measured time of the layout predicted fastest over the fastest, less 1, mean over "
         "questions (one model, sequence, GPUs, batch).\nnaive: mean error of "
         "FLOPs/(gpus·peak·e)·(1 + (pp−1)/(vpp·microbatches)), e the median of the block's other "
         "rows on that GPU in that precision.\n";
  if (!held_out) return;
  std::cout << "family out, scale out: mean error of rows that a refit did not see, each family or "
               "the largest scale of each (scripts/fit_profiles).\n";
  if (held_out->profiles != profiles_digest())
    std::cout << "STALE: the last two columns are of profiles " << held_out->profiles
              << ", these are " << profiles_digest() << ".\n";
}

void print_parts(const std::vector<Part>& parts) {
  if (parts.empty()) return;
  Table table({"of", "part", "n", "mean", "median", "worst", "bias", "naive"});
  for (const Part& part : parts) {
    const Errors& ours = part.all.ours;
    table.add({part.of, part.part, std::to_string(ours.count), percent_text(ours.mean),
               percent_text(ours.median), signed_percent_text(ours.worst),
               signed_percent_text(ours.bias),
               part.all.naive.count ? percent_text(part.all.naive.mean) : ""});
  }
  std::cout << "\nStep times by part of a block, then by framework over all blocks\n"
            << table.text();
}

// The software stack of a memory figure: the same layout needs different memory under others.
void print_memory_stacks(const std::vector<RowResult>& results) {
  std::map<std::string, std::vector<std::string>> blocks;
  for (const RowResult& result : results) {
    if (!result.used() || !is_memory(result.row.metric)) continue;
    std::vector<std::string>& names = blocks[name(result.memory_of)];
    if (names.empty() || names.back() != result.row.block) names.push_back(result.row.block);
  }
  for (const auto& [stack, names] : blocks) {
    std::cout << (stack == blocks.begin()->first ? "memory as kept by " : "; by ") << stack << ":";
    for (const std::string& block : names) std::cout << " " << block;
  }
  if (!blocks.empty()) std::cout << ".\n";
}

void print_rows_left_out(const std::vector<RowResult>& results,
                         const std::vector<BlockSummary>& summaries) {
  std::cout << "\n";
  Table table({"block", "of", "rows", "used", "skipped", "duplicates", "outliers"});
  for (const BlockSummary& s : summaries)
    table.add({s.block, s.memory ? "memory" : "time", std::to_string(s.rows),
               std::to_string(s.complete.ours.count + s.assumed.ours.count),
               std::to_string(s.skipped), std::to_string(s.duplicates),
               std::to_string(s.outliers)});
  std::cout << table.text();
  std::map<std::string, std::vector<const RowResult*>> reasons;
  for (const RowResult& result : results)
    if (!result.used()) reasons[result.row.block + ": " + result.reason].push_back(&result);
  if (reasons.empty()) return;
  std::cout << "\nSkipped\n";
  for (const auto& [reason, rows] : reasons) {
    std::cout << "  " << rows.size() << "  " << reason << "\n";
    if (rows.size() <= 3)
      for (const RowResult* result : rows)
        std::cout << "       " << result->row.file << ":" << result->row.line << " "
                  << result->row.id << "\n";
  }
}

void print_every_row(const std::vector<RowResult>& results) {
  Table table({"row", "measured", "predicted", "unit", "error", "naive"});
  for (const RowResult& result : results) {
    if (!result.used()) continue;
    table.add({result.row.id, number_text(result.row.measured, 2), number_text(result.predicted, 2),
               result.row.unit, signed_percent_text(result.error.value_or(0)),
               result.naive ? signed_percent_text(*result.naive / result.measured_step - 1) : ""});
  }
  std::cout << table.text() << "\n";
}

std::vector<PublishedRow> read_rows(const std::vector<std::string>& files) {
  std::vector<PublishedRow> rows;
  std::map<std::string, std::string> seen;
  for (const std::string& file : files) {
    if (file.ends_with(".json")) continue;
    std::vector<std::string> unknown;
    for (PublishedRow& row : read_published(read_file(file), file, unknown)) {
      const auto [first, fresh] = seen.try_emplace(row.id, file);
      if (!fresh)
        throw InputError(file, "line " + std::to_string(row.line) + ", column id",
                         "\"" + row.id + "\" is in " + first->second + " too",
                         "each row may be given once");
      rows.push_back(std::move(row));
    }
    for (const std::string& column : unknown)
      std::cerr << file << ": note: column " << column << " is not read\n";
  }
  return rows;
}

struct Results {
  std::vector<RowResult> rows;
  std::optional<HeldOut> held_out;
};

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
      "first \"_\").",
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
  const std::vector<BlockSummary> summaries = summarize_blocks(results.rows);
  if (args.json()) {
    std::cout << to_json(results.rows, summaries, results.held_out).dump(1) << "\n";
    return 0;
  }
  if (args.has("rows")) print_every_row(results.rows);
  print_table(summaries, results.held_out);
  print_memory_stacks(results.rows);
  print_parts(summarize_parts(results.rows));
  print_coverage(claims_of(results.rows, results.held_out));
  print_reliability(judge_pairs(results.rows, results.held_out));
  print_rows_left_out(results.rows, summaries);
  return 0;
}

}  // namespace polyphony::sim
