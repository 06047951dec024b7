#include "sim/shown_runs/validation_text.h"

#include <map>

#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

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

}  // namespace

std::string summary_text(const std::vector<BlockSummary>& summaries,
                         const std::optional<HeldOut>& held_out) {
  Table table({"block", "of", "rows", "n", "mean", "median", "worst", "bias", "tau", "regret",
               "naive", "family out", "scale out"});
  for (const BlockSummary& summary : summaries) {
    add_group(table, summary, summary.complete, "complete", held_out);
    add_group(table, summary, summary.assumed, "assumed", held_out);
  }
  std::string text =
      table.text() +
      "\nErrors are of step times and bytes, predicted over measured less 1; duplicates and "
      "outliers left out. tau: Kendall's, mean over families of 5 layouts\nor more. regret: "
      "measured time of the layout predicted fastest over the fastest, less 1, mean over "
      "questions (one model, sequence, GPUs, batch).\nnaive: mean error of "
      "FLOPs/(gpus·peak·e)·(1 + (pp−1)/(vpp·microbatches)), e the median of the block's other "
      "rows on that GPU in that precision.\n";
  if (!held_out) return text;
  text +=
      "family out, scale out: mean error of rows that a refit did not see, each family or "
      "the largest scale of each (scripts/fit_profiles).\n";
  if (held_out->profiles != profiles_digest())
    text += "STALE: the last two columns are of profiles " + held_out->profiles + ", these are " +
            profiles_digest() + ".\n";
  return text;
}

std::string parts_text(const std::vector<Part>& parts) {
  if (parts.empty()) return "";
  Table table({"of", "part", "n", "mean", "median", "worst", "bias", "naive"});
  for (const Part& part : parts) {
    const Errors& ours = part.all.ours;
    table.add({part.of, part.part, std::to_string(ours.count), percent_text(ours.mean),
               percent_text(ours.median), signed_percent_text(ours.worst),
               signed_percent_text(ours.bias),
               part.all.naive.count ? percent_text(part.all.naive.mean) : ""});
  }
  return "\nStep times by part of a block, then by framework over all blocks\n" + table.text();
}

std::string memory_stacks_text(const std::vector<RowResult>& results) {
  std::string text;
  std::map<std::string, std::vector<std::string>> blocks;
  for (const RowResult& result : results) {
    if (!result.used() || !is_memory(result.row.metric)) continue;
    std::vector<std::string>& names = blocks[name(result.memory_of)];
    if (names.empty() || names.back() != result.row.block) names.push_back(result.row.block);
  }
  for (const auto& [stack, names] : blocks) {
    text += (stack == blocks.begin()->first ? "memory as kept by " : "; by ") + stack + ":";
    for (const std::string& block : names) text += " " + block;
  }
  return text + (blocks.empty() ? "" : ".\n");
}

std::string left_out_text(const std::vector<RowResult>& results,
                          const std::vector<BlockSummary>& summaries) {
  Table table({"block", "of", "rows", "used", "skipped", "duplicates", "outliers"});
  for (const BlockSummary& s : summaries)
    table.add({s.block, s.memory ? "memory" : "time", std::to_string(s.rows),
               std::to_string(s.complete.ours.count + s.assumed.ours.count),
               std::to_string(s.skipped), std::to_string(s.duplicates),
               std::to_string(s.outliers)});
  std::string text = "\n" + table.text();
  std::map<std::string, std::vector<const RowResult*>> reasons;
  for (const RowResult& result : results)
    if (!result.used()) reasons[result.row.block + ": " + result.reason].push_back(&result);
  if (reasons.empty()) return text;
  text += "\nSkipped\n";
  for (const auto& [reason, rows] : reasons) {
    text += "  " + std::to_string(rows.size()) + "  " + reason + "\n";
    if (rows.size() <= 3)
      for (const RowResult* result : rows)
        text += "       " + result->row.file + ":" + std::to_string(result->row.line) + " " +
                result->row.id + "\n";
  }
  return text;
}

std::string every_row_text(const std::vector<RowResult>& results) {
  Table table({"row", "measured", "predicted", "unit", "error", "naive"});
  for (const RowResult& result : results) {
    if (!result.used()) continue;
    table.add({result.row.id, number_text(result.row.measured, 2), number_text(result.predicted, 2),
               result.row.unit, signed_percent_text(result.error.value_or(0)),
               result.naive ? signed_percent_text(*result.naive / result.measured_step - 1) : ""});
  }
  return table.text() + "\n";
}

}  // namespace polyphony::sim
