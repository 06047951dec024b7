#include "shared/text/json_form.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<Variation>& variation_keys() {
  static const JsonKeys<Variation> keys{
      {"path", a("string"), "path of the value that is varied",
       [](const Variation& v) { return v.path; }},
      {"values", list_of(a("string")), "its values", [](const Variation& v) { return v.values; }}};
  return keys;
}

struct AskedOf {
  const Asked& asked;
  const std::vector<Variation>& variations;
};

const JsonKeys<AskedOf>& asked_keys() {
  using Of = AskedOf;
  static const JsonKeys<Of> keys{
      {"set", map_of(a("string")), "value of each varied path",
       [](const Of& of) {
         json set = json::object();
         for (std::size_t i = 0; i < of.variations.size(); ++i)
           set[of.variations[i].path] = of.asked.values[i];
         return set;
       }},
      {"best", or_null(reference_to("candidate")), "the fastest layout; null: no layout was found",
       [](const Of& of) {
         const auto& ranked = of.asked.answer.ranked;
         return ranked.empty() ? json() : to_json(ranked.front(), of.asked.model);
       }},
      {"why_not", a("string"), "why no layout was found; empty: one was found",
       [](const Of& of) { return of.asked.why_not; }},
      {"step_seconds", map_of(a("number")),
       "by placement: step time of the fastest layout, in seconds", [](const Of& of) {
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
      {"variations", list_of(schema_of(variation_keys(), "one option --vary")),
       "the varied values, one entry per --vary",
       [](const Varied& varied) { return array_of(variation_keys(), varied.variations); }},
      {"questions", list_of(schema_of(asked_keys(), "one combination of values")),
       "all combinations, the last variation changing fastest; fewer if stopped",
       [](const Varied& varied) {
         return array_of(asked_keys(), varied.asked,
                         [&](const Asked& asked) { return AskedOf{asked, varied.variations}; });
       }}};
  return keys;
}

}  // namespace

json to_json(const Varied& varied) { return object_of(varied_keys(), varied); }

std::string vary_schema() {
  return schema_document("polyphony sweep --vary --format json",
                         schema_of(varied_keys(), "best layouts for varied values"),
                         candidate_definitions());
}

}  // namespace polyphony::sim
