#include "sim/published/validation_json.h"

namespace polyphony::sim {
namespace {

nlohmann::ordered_json errors_json(const Errors& e) {
  return {{"rows", e.count},
          {"mean", e.mean},
          {"median", e.median},
          {"worst", e.worst},
          {"bias", e.bias}};
}

nlohmann::ordered_json group_json(const Group& group) {
  return {{"ours", errors_json(group.ours)}, {"naive", errors_json(group.naive)}};
}

nlohmann::ordered_json row_json(const RowResult& result) {
  const PublishedRow& row = result.row;
  nlohmann::ordered_json json = {{"id", row.id},
                                 {"block", row.block},
                                 {"metric", name(row.metric)},
                                 {"unit", row.unit},
                                 {"measured", row.measured}};
  json["predicted"] = result.used() ? nlohmann::ordered_json(result.predicted) : nullptr;
  if (!result.used()) json["reason"] = result.reason;
  if (result.error) json["error"] = *result.error;
  if (result.naive) json["naive_error"] = *result.naive / result.measured_step - 1;
  if (!result.note.empty()) json["note"] = result.note;
  if (result.used() && is_memory(row.metric)) json["memory_of"] = name(result.memory_of);
  json["complete"] = row.complete();
  json["family"] = row.family;
  if (!result.stack.empty()) json["device"] = result.device, json["stack"] = result.stack;
  if (row.gpus) json["gpus"] = *row.gpus;
  if (!row.duplicate_of.empty()) json["duplicate_of"] = row.duplicate_of;
  if (!row.outlier.empty()) json["outlier"] = row.outlier;
  return json;
}

nlohmann::ordered_json block_json(const BlockSummary& s, const std::optional<HeldOut>& held_out) {
  nlohmann::ordered_json json = {{"block", s.block},
                                 {"of", s.memory ? "memory" : "time"},
                                 {"rows", s.rows},
                                 {"skipped", s.skipped},
                                 {"duplicates", s.duplicates},
                                 {"outliers", s.outliers},
                                 {"complete", group_json(s.complete)},
                                 {"assumed", group_json(s.assumed)}};
  if (s.tau) json["tau"] = *s.tau;
  if (s.regret) json["regret"] = *s.regret;
  if (!held_out || s.memory) return json;
  const auto block = held_out->blocks.find(s.block);
  json["fitted"] = block != held_out->blocks.end();
  if (!json["fitted"]) return json;
  const HeldOutBlock& errors = block->second;
  if (errors.family_out) json["family_out"] = errors_json(*errors.family_out);
  if (errors.scale_out) json["scale_out"] = errors_json(*errors.scale_out);
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const std::vector<RowResult>& results,
                               const std::vector<BlockSummary>& summaries,
                               const std::optional<HeldOut>& held_out) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), blocks = rows, parts = rows;
  for (const RowResult& result : results) rows.push_back(row_json(result));
  for (const BlockSummary& summary : summaries) blocks.push_back(block_json(summary, held_out));
  for (const Part& part : summarize_parts(results)) {
    parts.push_back({{"of", part.of}, {"part", part.part}});
    parts.back().update(group_json(part.all));
  }
  nlohmann::ordered_json json = {
      {"rows", rows}, {"blocks", blocks}, {"parts", parts}, {"profiles", profiles_digest()}};
  if (held_out) json["held_out_is_stale"] = held_out->profiles != profiles_digest();
  return json;
}

}  // namespace polyphony::sim
