#include "shared/text/json_form.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<Variation>& variation_keys() {
  static const JsonKeys<Variation> keys{
      {"path", a("string"), "what is changed", [](const Variation& v) { return v.path; }},
      {"values", list_of(a("string")), "to what", [](const Variation& v) { return v.values; }}};
  return keys;
}

struct AskedOf {
  const Asked& asked;
  const std::vector<Variation>& variations;
};

const JsonKeys<AskedOf>& asked_keys() {
  using Of = AskedOf;
  static const JsonKeys<Of> keys{
      {"set", map_of(a("string")), "the value of each path",
       [](const Of& of) {
         json set = json::object();
         for (std::size_t i = 0; i < of.variations.size(); ++i)
           set[of.variations[i].path] = of.asked.values[i];
         return set;
       }},
      {"best", or_null(reference_to("candidate")), "the fastest layout; null: there is none",
       [](const Of& of) {
         const auto& ranked = of.asked.answer.ranked;
         return ranked.empty() ? json() : to_json(ranked.front(), of.asked.model);
       }},
      {"why_not", a("string"), "why there is none", [](const Of& of) { return of.asked.why_not; }},
      {"step_seconds", map_of(a("number")), "of the fastest, by placement", [](const Of& of) {
         json steps = json::object();
         for (const std::string& placement : enum_names<Placement>())
           if (const Candidate* c = best_of(of.asked.answer, enum_named<Placement>(placement)))
             steps[placement] = c->figures.step.count();
         return steps;
       }}};
  return keys;
}

const JsonKeys<Varied>& varied_keys() {
  static const JsonKeys<Varied> keys{
      {"variations", list_of(schema_of(variation_keys(), "one of --vary")), "what was asked",
       [](const Varied& varied) { return array_of(variation_keys(), varied.variations); }},
      {"questions", list_of(schema_of(asked_keys(), "one combination of values")),
       "the last variation fastest; fewer than all: stopped", [](const Varied& varied) {
         return array_of(asked_keys(), varied.asked,
                         [&](const Asked& asked) { return AskedOf{asked, varied.variations}; });
       }}};
  return keys;
}

}  // namespace

const Candidate* best_of(const Sweep& answer, Placement placement) {
  for (const Candidate& c : answer.ranked)
    if (c.layout.placement == placement) return &c;
  return nullptr;
}

json to_json(const Varied& varied) { return object_of(varied_keys(), varied); }

std::string vary_schema() {
  return schema_document("polyphony sweep --vary --format json",
                         schema_of(varied_keys(), "where does the best layout change?"),
                         candidate_definitions());
}

}  // namespace polyphony::sim
