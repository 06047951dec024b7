#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/text/json_form.h"
#include "sim/pages/searched.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

std::pair<Seconds, Seconds> ends_of(const json& value) {
  return {Seconds(value.at(0).get<double>()), Seconds(value.at(1).get<double>())};
}

SearchedRow row_of(const json& value) {
  SearchedRow row;
  row.name = value.value("name", "");
  row.words = value.at("words").get<std::string>();
  row.brief = value.at("brief").get<std::string>();
  row.placement = enum_named<Placement>(value.at("placement").get<std::string>());
  row.simulated = value.at("simulated").get<bool>();
  row.leading = value.at("leading").get<bool>();
  row.tied = value.at("tied").get<bool>();
  row.step = Seconds(value.at("step_seconds").get<double>());
  if (value.contains("step_change")) row.change = value.at("step_change").get<double>();
  if (value.contains("interval90_seconds")) row.interval = ends_of(value.at("interval90_seconds"));
  if (value.contains("difference90_seconds"))
    row.difference = ends_of(value.at("difference90_seconds"));
  row.tokens_per_second_per_rank = value.at("tokens_per_second_per_rank").get<double>();
  row.utilization = value.at("mfu").get<double>();
  if (const json& dollars = value.at("dollars_per_million_tokens"); !dollars.is_null())
    row.dollars = dollars.get<double>();
  row.memory = Bytes(value.at("peak_memory_bytes").get<std::int64_t>() +
                     value.value("library_memory_bytes", std::int64_t{0}));  // older files lack it
  if (value.contains("breakdown_seconds"))
    row.seconds = value.at("breakdown_seconds").get<std::map<std::string, double>>();
  return row;
}

Searched sweep_of(const json& value) {
  Searched answer;
  for (const json& row : value.at("ranked")) answer.ranked.push_back(row_of(row));
  for (const json& row : value.at("baselines")) answer.baselines.push_back(row_of(row));
  answer.profile = value.at("profile").get<std::string>();
  answer.stack = value.at("stack").get<std::string>();
  if (const json& device = value.at("device_memory_bytes"); !device.is_null())
    answer.device = Bytes(device.get<std::int64_t>());
  answer.tied = value.at("tied").get<std::int64_t>();
  answer.simplest = value.at("simplest").get<std::size_t>();
  answer.combinations = value.at("combinations").get<double>();
  answer.legal = value.at("legal").get<std::int64_t>();
  answer.too_large = value.at("too_large").get<std::int64_t>();
  answer.screened_by_bound = value.at("screened_by_bound").get<std::int64_t>();
  answer.estimated = value.at("estimated").get<std::int64_t>();
  answer.simulated = value.at("simulated").get<std::int64_t>();
  answer.gaps = value.at("gaps").get<std::map<std::string, double>>();
  answer.notes = value.at("notes").get<std::vector<std::string>>();
  answer.why = value.at("why").get<std::vector<std::string>>();
  if (value.contains("question")) {
    const json& words = value.at("question");
    answer.question =
        QuestionWords{words.value("model", ""), words.value("cluster", ""), words.value("data", ""),
                      words.value("software", ""), words.value("accuracy", "")};
  }
  if (!answer.ranked.empty()) static_cast<void>(answer.ranked.at(answer.simplest));
  return answer;
}

SearchedVaried varied_of(const json& value) {
  SearchedVaried answer;
  for (const json& variation : value.at("variations"))
    answer.variations.push_back({variation.at("path").get<std::string>(),
                                 variation.at("values").get<std::vector<std::string>>()});
  for (const json& asked : value.at("questions")) {
    SearchedQuestion& question = answer.questions.emplace_back();
    for (const Variation& variation : answer.variations)
      question.values.push_back(asked.at("set").at(variation.path).get<std::string>());
    if (const json& best = asked.at("best"); !best.is_null()) question.best = row_of(best);
    question.why_not = asked.at("why_not").get<std::string>();
    for (const auto& [placement, step] : asked.at("step_seconds").items())
      question.steps[enum_named<Placement>(placement)] = Seconds(step.get<double>());
  }
  return answer;
}

}  // namespace

std::variant<Searched, SearchedVaried> read_searched(const std::string& text,
                                                     const std::string& file) {
  const json value = json::parse(text, nullptr, false);
  if (value.is_discarded())
    throw InputError(file, "", "is not JSON (cut off?)", "write it again with --format json");
  try {
    if (value.contains("questions")) return varied_of(value);
    return sweep_of(value);
  } catch (const std::exception&) {
    throw InputError(file, "", "is not the answer of a sweep of this version",
                     "polyphony sweep SCENARIO --format json > " + file);
  }
}

}  // namespace polyphony::sim
