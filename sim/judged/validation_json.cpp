#include "sim/judged/validation_json.h"

#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/shipped_certainty.h"
#include "sim/judged/coverage.h"
#include "sim/judged/pairs.h"
#include "sim/judged/reliability.h"

namespace polyphony::sim {
namespace {

// Returns the numbers of the shipped profiles by device, with the keys that --set accepts. Times
// (latencies and overheads) are the same for all GPUs.
nlohmann::ordered_json devices_json() {
  nlohmann::ordered_json json;
  for (const HardwareProfile& profile : shipped_profiles()) {
    if (!find_device(profile.device.name)->fit) continue;
    const std::string device = profile.name.substr(0, profile.name.rfind('-'));
    const auto numbers = json_value(profile);
    for (const auto& [key, value] : numbers.items())
      if (value.is_number() && key != "profile" && key != "step_error") json[device][key] = value;
  }
  return json;
}

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
  if (result.belief) {
    json["footing"] = name(result.certainty.footing);
    for (std::size_t k = 0; k < result.belief->effects.size(); ++k)
      json["effects"][result.certainty.errors[k].begin()->first] = result.belief->effects[k];
  }
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

nlohmann::ordered_json coverage_json(const std::vector<Claim>& claims) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Coverage& c : coverage(claims)) {
    nlohmann::ordered_json json = {{"footing", c.footing ? name(*c.footing) : "all"},
                                   {"block", c.block.empty() ? "all" : c.block},
                                   {"rows", c.rows}};
    for (std::size_t i = 0; i < kShares.size(); ++i)
      json["intervals"].push_back(
          {{"share", kShares[i]}, {"inside", c.inside[i]}, {"p", c.chance[i]}});
    json["median_half_width90"] = c.half_width;
    json["median_error"] = c.median;
    json["interval_score90"] = c.score;
    if (c.one_width_score) json["interval_score90_of_one_width"] = *c.one_width_score;
    list.push_back(json);
  }
  return list;
}

nlohmann::ordered_json order_json(const std::vector<JudgedPair>& pairs) {
  nlohmann::ordered_json bins = nlohmann::ordered_json::array();
  for (const ReliabilityBin& bin : reliability(pairs))
    bins.push_back({{"low", bin.low},
                    {"high", bin.high},
                    {"stated", bin.stated},
                    {"happened", bin.happened},
                    {"pairs", bin.pairs}});
  std::size_t tied = 0;
  std::array<std::size_t, kShares.size()> inside{};
  for (const JudgedPair& pair : pairs) {
    tied += pair.tied;
    for (std::size_t i = 0; i < kShares.size(); ++i) inside[i] += pair.inside[i];
  }
  return {{"pairs", pairs.size()}, {"tied", tied}, {"inside", inside}, {"bins", bins}};
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
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (const Pair& pair : find_pairs(results))
    pairs.push_back({{"first", results[pair.first].row.id},
                     {"second", results[pair.second].row.id},
                     {"other", pair.distance.other},
                     {"tensor", pair.distance.tensor}});
  nlohmann::ordered_json json = {
      {"rows", rows},   {"blocks", blocks},          {"parts", parts},
      {"pairs", pairs}, {"devices", devices_json()}, {"profiles", profiles_digest()}};
  for (const ParameterError& error :
       shipped_certainty(shipped_fits().front(), Footing::known).errors)
    if (error.contains("grouped_efficiency")) json["experts"] = error.at("grouped_efficiency");
  json["coverage"] = coverage_json(claims_of(results, held_out));
  json["order"] = order_json(judge_pairs(results, held_out));
  if (held_out) json["held_out_is_stale"] = held_out->profiles != profiles_digest();
  return json;
}

}  // namespace polyphony::sim
