#include "shared/scenario_io/run_record_json.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "shared/error.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony {
namespace {

using Json = nlohmann::json;

// The keys of a module that may change without changing the meaning of its parameters: which
// parameters are trained, weights in the loss, and the weights that training began with.
constexpr std::array<std::string_view, 6> kChoicesOfTraining{
    "train", "balance_weight", "loss_weight", "folder", "config", "model_type"};

// Returns the values of a record by JSON pointer ("/model/language/heads").
std::map<std::string, Json> places(const std::string& record, const std::string& file) {
  const Json json = Json::parse(record, nullptr, false);
  if (!json.is_object())
    throw InputError(file, "/run", "the value is not a run record", "use another checkpoint");
  const Json flat = json.flatten();
  std::map<std::string, Json> values;
  for (const auto& [place, value] : flat.items()) values[place] = value;
  return values;
}

bool means_another_model(const std::string& place) {
  if (place.rfind("/model/", 0) != 0) return false;
  const std::string_view key = std::string_view(place).substr(place.rfind('/') + 1);
  return std::find(kChoicesOfTraining.begin(), kChoicesOfTraining.end(), key) ==
         kChoicesOfTraining.end();
}

// Returns "data.global_batch" for "/data/global_batch".
std::string dotted(std::string place) {
  std::replace(place.begin(), place.end(), '/', '.');
  return place.substr(1);
}

}  // namespace

std::string run_record(const Scenario& scenario) {
  Json whole = json_value(scenario);
  whole["training"].erase("steps");
  Json record;
  for (const char* part : {"model", "data", "training"}) record[part] = whole[part];
  return record.dump();
}

RecordDifferences compare_records(const std::string& then, const std::string& now,
                                  const std::string& file) {
  const auto before = places(then, file), after = places(now, file);
  const auto text = [](const std::map<std::string, Json>& values, const std::string& place) {
    const auto found = values.find(place);
    return found == values.end() ? std::string("not given") : found->second.dump();
  };
  std::map<std::string, Json> all = before;
  all.insert(after.begin(), after.end());
  RecordDifferences differences;
  for (const auto& [place, value] : all) {
    const std::string was = text(before, place), is = text(after, place);
    if (was == is) continue;
    auto& list = means_another_model(place) ? differences.another_model : differences.changed;
    list.push_back(dotted(place) + " was " + was + ", is " + is);
  }
  return differences;
}

}  // namespace polyphony
