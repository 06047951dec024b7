#include "sim/evidence/profile_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/parameter.h"
#include "shared/text/figure_text.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/evidence/step_fit.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

bool shown(const std::string& key, double value) {
  return !key.starts_with("corrections.") || value != 1;
}

const JsonKeys<ShownParameter>& parameter_keys_of_json() {
  static const JsonKeys<ShownParameter> keys = {
      {"parameter", a("string"), "its key in the profile",
       [](const ShownParameter& p) { return json(p.key); }},
      {"value", a("number"), "value: seconds, or a ratio",
       [](const ShownParameter& p) { return json(p.value); }},
      {"deviation", or_null(a("number")), "relative deviation; null: not stated",
       [](const ShownParameter& p) { return p.deviation ? json(*p.deviation) : json(); }}};
  return keys;
}

const JsonKeys<HardwareProfile>& profile_keys() {
  static const JsonKeys<HardwareProfile> keys = {
      {"name", a("string"), "name of the profile",
       [](const HardwareProfile& p) { return json(p.name); }},
      {"device", a("string"), "device that it describes",
       [](const HardwareProfile& p) { return json(p.device.name); }},
      {"stack", a("string"), "software stack that it describes",
       [](const HardwareProfile& p) { return json(p.stack.name); }},
      {"source", a("string"), "source of its values",
       [](const HardwareProfile& p) { return json(p.source); }},
      {"certainty_source", a("string"), "source of their errors",
       [](const HardwareProfile& p) { return json(p.certainty.source); }},
      {"footing", a("string"), "calibration basis: what it was fitted to, of stack and device",
       [](const HardwareProfile& p) { return json(name(p.certainty.footing)); }},
      {"residual", or_null(a("number")), "relative deviation that no parameter explains",
       [](const HardwareProfile& p) {
         return p.certainty.residual ? json(*p.certainty.residual) : json();
       }},
      {"misses", list_of(a("string")), "measured steps that correct predictions of their layouts",
       [](const HardwareProfile& p) {
         json sources = json::array();
         for (const KnownMiss& miss : p.certainty.misses) sources.push_back(miss.source);
         return sources;
       }},
      {"step_error", a("number"), "half of a step's 90 % interval, relative",
       [](const HardwareProfile& p) { return json(p.step_error); }},
      {"parameters", list_of(schema_of(parameter_keys_of_json(), "one parameter")),
       "with their errors",
       [](const HardwareProfile& p) {
         return array_of(parameter_keys_of_json(), parameters_of(p));
       }},
      {"implausible", list_of(a("string")), "values far from those of shipped profiles",
       [](const HardwareProfile& p) { return json(implausible(p)); }}};
  return keys;
}

const JsonKeys<ParameterDifference>& difference_keys() {
  static const JsonKeys<ParameterDifference> keys = {
      {"parameter", a("string"), "its key in the profile",
       [](const ParameterDifference& d) { return json(d.key); }},
      {"first", a("number"), "value in the first profile: seconds, or a ratio",
       [](const ParameterDifference& d) { return json(d.first); }},
      {"second", a("number"), "value in the second profile",
       [](const ParameterDifference& d) { return json(d.second); }},
      {"deviations", or_null(a("number")),
       "ln(second / first) in units of the combined stated deviation",
       [](const ParameterDifference& d) { return d.deviations ? json(*d.deviations) : json(); }}};
  return keys;
}

struct TwoProfiles {
  const HardwareProfile *first, *second;
};
const JsonKeys<TwoProfiles>& two_keys() {
  static const JsonKeys<TwoProfiles> keys = {
      {"first", a("string"), "name of the first profile",
       [](const TwoProfiles& t) { return json(t.first->name); }},
      {"second", a("string"), "name of the second profile",
       [](const TwoProfiles& t) { return json(t.second->name); }},
      {"differences", list_of(schema_of(difference_keys(), "one parameter")),
       "parameters that differ", [](const TwoProfiles& t) {
         return array_of(difference_keys(), differences_of(*t.first, *t.second));
       }}};
  return keys;
}

}  // namespace

std::vector<ShownParameter> parameters_of(const HardwareProfile& profile) {
  const auto deviations = parameter_deviations(profile.certainty);
  std::vector<ShownParameter> list;
  for (const std::string& key : parameter_keys()) {
    const double value = parameter(profile, key);
    const auto found = deviations.find(key);
    if (!shown(key, value) && found == deviations.end()) continue;
    list.push_back(
        {key, value, found == deviations.end() ? std::nullopt : std::optional(found->second)});
  }
  return list;
}

std::vector<ParameterDifference> differences_of(const HardwareProfile& first,
                                                const HardwareProfile& second) {
  const auto a = parameter_deviations(first.certainty), b = parameter_deviations(second.certainty);
  std::vector<ParameterDifference> list;
  for (const std::string& key : parameter_keys()) {
    const double x = parameter(first, key), y = parameter(second, key);
    if (x == y) continue;
    ParameterDifference one{key, x, y, {}};
    const auto of_x = a.find(key), of_y = b.find(key);
    if (x > 0 && y > 0 && of_x != a.end() && of_y != b.end())
      one.deviations = std::log(y / x) / std::hypot(of_x->second, of_y->second);
    list.push_back(one);
  }
  return list;
}

std::vector<std::string> implausible(const HardwareProfile& profile) {
  std::vector<std::string> lines;
  for (const ShownParameter& p : parameters_of(profile)) {
    if (p.deviation && *p.deviation > 1)
      lines.push_back(p.key + " has an uncertainty of ±" + percent_text(*p.deviation, 0));
    if (p.key.starts_with("corrections.") || !(p.value > 0)) continue;
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const HardwareProfile& other : shipped_profiles()) {
      if (other.collectives != profile.collectives) continue;
      for (const SoftwareStack& stack : shipped_stacks()) {
        HardwareProfile with = other;
        with.stack = stack;
        if (const double value = parameter(with, p.key); value > 0)
          low = std::min(low, value), high = std::max(high, value);
      }
    }
    if (!(high > 0)) continue;
    char text[160];
    if (p.value * kFar < low)
      std::snprintf(text, sizeof text,
                    " %.3g is %.1f times below the lowest of the shipped profiles, %.3g", p.value,
                    low / p.value, low);
    else if (p.value > kFar * high)
      std::snprintf(text, sizeof text,
                    " %.3g is %.1f times above the highest of the shipped profiles, %.3g", p.value,
                    p.value / high, high);
    else
      continue;
    lines.push_back(p.key + text);
  }
  return lines;
}

json shown_json(const HardwareProfile& profile) { return object_of(profile_keys(), profile); }
json difference_json(const HardwareProfile& first, const HardwareProfile& second) {
  return object_of(two_keys(), TwoProfiles{&first, &second});
}

std::string shown_schema() {
  return schema_document("polyphony profile show", schema_of(profile_keys(), "a hardware profile"),
                         json::object());
}
std::string difference_schema() {
  return schema_document("polyphony profile diff", schema_of(two_keys(), "two hardware profiles"),
                         json::object());
}

}  // namespace polyphony::sim
