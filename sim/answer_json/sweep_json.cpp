#include <cmath>

#include "shared/scenario_io/scenario_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/sweep/leading.h"
#include "sim/text/json_keys.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Maybe = std::optional<json>;

json both(double low, double high) { return {low, high}; }
json both(const SecondsInterval& seconds) {
  return both(seconds.low.count(), seconds.high.count());
}

struct CandidateOf {
  const Candidate& c;
  const Model& model;
  std::string name = {};  // for a baseline
  bool leading = true;
  std::string ranks = "ranks";  // Sweep::ranks
};

const JsonKeys<CandidateOf>& candidate_keys() {
  using Of = CandidateOf;
  static const JsonKeys<Of> keys = [] {
    JsonKeys<Of> made{
        {"name", a("string"), "name of the baseline; only for baselines",
         [](const Of& of) { return of.name.empty() ? Maybe() : Maybe(of.name); }, false},
        {"layout", a("string"), "the layout in words", [](const Of& of) { return of.c.text; }},
        {"layout_form", reference_to("layout"), "the layout in the form of a scenario's /layout",
         [](const Of& of) { return json(json_value(of.c.layout, of.model, of.c.costs)); }},
        {"brief", a("string"), "the layout in short form (scenarios/GLOSSARY.md)",
         [](const Of& of) { return brief(of.model, of.c.layout); }},
        {"words", a("string"), "the layout as the table of `polyphony sweep` writes it",
         [](const Of& of) { return layout_words(of.model, of.c.layout, of.ranks); }},
        {"simulated", a("boolean"), "true: simulated; false: only estimated",
         [](const Of& of) { return of.c.simulated; }},
        {"placement",
         {{"enum", enum_names<Placement>()}},
         "how the modules share the ranks",
         [](const Of& of) { return name(of.c.layout.placement); }},
        {"step_seconds", a("number"),
         "step time in seconds, from the most accurate predictor that ran",
         [](const Of& of) { return of.c.figures.step.count(); }},
        {"estimate_seconds", a("number"),
         "step time in seconds by the longest path, without contention",
         [](const Of& of) { return of.c.estimate.count(); }},
        {"bound_seconds", a("number"), "lower bound of the step time in seconds, in closed form",
         [](const Of& of) { return of.c.bound.step.count(); }},
        {"step_change", a("number"),
         "relative difference from the first baseline: (step - baseline) / baseline",
         [](const Of& of) { return of.c.change ? Maybe(of.c.change->ratio) : Maybe(); }, false},
        {"step_change90", low_and_high(), "90 % interval of step_change",
         [](const Of& of) {
           return of.c.change && of.c.change->interval
                      ? Maybe(both(of.c.change->interval->first, of.c.change->interval->second))
                      : Maybe();
         },
         false},
        {"breakdown_seconds", map_of(a("number")),
         "seconds of the step of the rank that idles least: compute by kind, and idle time by what "
         "it waited for; only for rows that are compared with the first",
         [](const Of& of) { return of.c.idle ? Maybe(breakdown_seconds(of.c)) : Maybe(); }, false},
        {"tokens_per_second_per_rank", a("number"), "language tokens per second and rank",
         [](const Of& of) { return of.c.figures.tokens_per_second_per_rank; }},
        {"mfu", a("number"),
         "model FLOPs utilization, a fraction; 0: the peak of the device is unknown",
         [](const Of& of) { return of.c.figures.model_flops_utilization; }},
        {"peak_memory_bytes", a("integer"), "peak memory of the worst rank",
         [](const Of& of) { return of.c.figures.peak_memory.value; }},
        {"library_memory_bytes", a("integer"),
         "memory of that rank's GPU that libraries take besides tensors; 0: not a GPU, or another "
         "framework's",
         [](const Of& of) { return of.c.figures.library_memory.value; }},
        {"worst_stage", a("string"), "pipeline stage of the rank that needs most memory",
         [](const Of& of) { return of.c.figures.worst_stage; }},
        {"leading", a("boolean"),
         "true for the first row with its placement, ranks of modules and grid of the language "
         "module",
         [](const Of& of) { return of.leading; }},
        {"tied", a("boolean"),
         "within the stated errors of the profile, this layout could be the fastest",
         [](const Of& of) { return of.c.tied; }},
        {"p95_seconds", or_null(a("number")),
         "95th percentile of the step time over varying batches, in seconds; only for the first "
         "rows, if it is the goal; null: a batch does not fit in memory",
         [](const Of& of) {
           if (!of.c.p95) return Maybe();
           return Maybe(std::isfinite(of.c.p95->count()) ? json(of.c.p95->count()) : json());
         },
         false},
        {"interval90_seconds", low_and_high(), "90 % interval of the step time, in seconds",
         [](const Of& of) { return of.c.belief ? Maybe(both(interval(*of.c.belief))) : Maybe(); },
         false},
        {"beats_best", a("number"), "probability that it is faster than the first row",
         [](const Of& of) {
           return of.c.difference ? Maybe(of.c.difference->second_wins) : Maybe();
         },
         false},
        {"difference90_seconds", low_and_high(),
         "90 % interval of its step time minus that of the first row, in seconds",
         [](const Of& of) {
           return of.c.difference ? Maybe(both(of.c.difference->seconds)) : Maybe();
         },
         false},
    };
    const json spent = spent_json({});
    for (const auto& [key, nothing] : spent.items())
      made.push_back(
          {key, or_null(a("number")),
           "dollars or kilowatt-hours, as the key states; null: the price or the power is unknown",
           [key = key](const Of& of) { return spent_json(of.c.figures).at(key); }});
    return made;
  }();
  return keys;
}

const JsonKeys<Rejection>& rejection_keys() {
  static const JsonKeys<Rejection> keys{
      {"placement",
       {{"enum", enum_names<Placement>()}},
       "placement of the combinations",
       [](const Rejection& r) { return name(r.placement); }},
      {"count", a("integer"), "number of combinations rejected for this reason",
       [](const Rejection& r) { return r.count; }},
      {"example", a("string"), "the reason, with the values of one of the combinations",
       [](const Rejection& r) { return r.example; }}};
  return keys;
}

struct SweepOf {
  const Sweep& sweep;
  const Model& model;
};

const JsonKeys<SweepOf>& sweep_keys() {
  using Of = SweepOf;
  static const JsonKeys<Of> keys{
      {"profile", a("string"), "name of the hardware profile",
       [](const Of& of) { return of.sweep.profile; }},
      {"stack", a("string"), "name of the software stack",
       [](const Of& of) { return of.sweep.stack; }},
      {"stated_error", a("number"),
       "relative error of step times that the profile states: half of a 90 % interval",
       [](const Of& of) { return of.sweep.stated_error; }},
      {"footing", a("string"),
       "calibration basis: whether the profile was fitted to measurements of this stack and device",
       [](const Of& of) { return name(of.sweep.footing); }},
      {"over_margin", a("boolean"),
       "true if no layout leaves the search's memory_margin free, so that rows take more",
       [](const Of& of) { return of.sweep.over_margin; }},
      {"device_memory_bytes", or_null(a("integer")), "memory of one device; null: unknown",
       [](const Of& of) {
         const Bytes memory =
             of.sweep.ranked.empty() ? Bytes{} : of.sweep.ranked.front().figures.device_memory;
         return memory.value > 0 ? json(memory.value) : json();
       }},
      {"combinations", a("number"), "number of combinations in the whole search space",
       [](const Of& of) { return of.sweep.combinations; }},
      {"legal", a("integer"), "legal combinations that were evaluated individually",
       [](const Of& of) { return of.sweep.legal; }},
      {"too_large", a("integer"), "legal combinations that do not fit in memory",
       [](const Of& of) { return of.sweep.too_large; }},
      {"screened_by_bound", a("integer"),
       "combinations that fit, but were ruled out by their lower bound",
       [](const Of& of) { return of.sweep.pruned; }},
      {"estimated", a("integer"), "number of layouts estimated by the longest path",
       [](const Of& of) { return of.sweep.estimated; }},
      {"simulated", a("integer"), "number of layouts simulated",
       [](const Of& of) { return of.sweep.simulated; }},
      {"gaps", map_of(a("number")),
       "by placement: fraction by which a layout that was not evaluated could be faster than the "
       "best",
       [](const Of& of) {
         json gaps = json::object();
         for (const auto& [placement, gap] : of.sweep.gaps) gaps[name(placement)] = gap;
         return gaps;
       }},
      {"nearest_misfit",
       or_null({{"type", "object"},
                {"properties",
                 {{"layout", a("string")}, {"where", a("string")}, {"memory_bytes", a("integer")}}},
                {"required", {"layout", "where", "memory_bytes"}},
                {"additionalProperties", false}}),
       "of the layouts that do not fit, the one that needs the least memory",
       [](const Of& of) {
         const Candidate& misfit = of.sweep.smallest_too_large;
         if (of.sweep.too_large == 0) return json();
         return json{{"layout", misfit.text},
                     {"where", misfit.bound.footprint.worst},
                     {"memory_bytes", misfit.bound.footprint.memory.value}};
       }},
      {"not_runnable", a("string"),
       "why the executor cannot run any layout, if --runnable was given; else empty",
       [](const Of& of) { return of.sweep.not_runnable; }},
      {"stopped", a("boolean"), "true if the search ended early",
       [](const Of& of) { return of.sweep.stopped; }},
      {"tied", a("integer"), "number of tied rows, including the first",
       [](const Of& of) { return of.sweep.tied; }},
      {"simplest", a("integer"),
       "index, from 0, of the tied row within 2 % of the best step that has the fewest kinds of "
       "parallelism, sharding and recomputation",
       [](const Of& of) { return of.sweep.simplest; }},
      {"tied_by",
       list_of({{"type", "object"},
                {"properties", {{"what", a("string")}, {"share", a("number")}}},
                {"required", {"what", "share"}},
                {"additionalProperties", false}}),
       "what determines the order of the tied rows, with its share of the variance of differences",
       [](const Of& of) {
         json parts = json::array();
         for (const auto& [what, share] : of.sweep.tied_by)
           parts.push_back({{"what", what}, {"share", share}});
         return parts;
       }},
      {"ranked", list_of(reference_to("candidate")), "layouts, fastest first",
       [](const Of& of) {
         json rows = json::array();
         const std::vector<bool> leading = leading_rows(of.sweep, of.model);
         for (std::size_t i = 0; i < leading.size(); ++i)
           rows.push_back(object_of(candidate_keys(), CandidateOf{of.sweep.ranked[i], of.model, "",
                                                                  leading[i], of.sweep.ranks}));
         return rows;
       }},
      {"baselines", list_of(reference_to("candidate")),
       "the scenario's own layout, and those that are commonly chosen without a search",
       [](const Of& of) {
         return array_of(candidate_keys(), of.sweep.baselines, [&](const BaselineResult& beside) {
           return CandidateOf{beside.candidate, of.model, beside.name, true, of.sweep.ranks};
         });
       }},
      {"rejected", list_of(schema_of(rejection_keys(), "illegal combinations with one reason")),
       "illegal combinations, by reason",
       [](const Of& of) { return array_of(rejection_keys(), of.sweep.rejected); }},
      {"failed", list_of(a("string")), "error messages of failed workers",
       [](const Of& of) { return of.sweep.failed; }},
      {"why", list_of(a("string")), "for each other placement, where its best layout loses time",
       [](const Of& of) { return of.sweep.why; }},
      {"notes", list_of(a("string")), "remarks on the answer",
       [](const Of& of) { return of.sweep.notes; }},
  };
  return keys;
}

const JsonKeys<QuestionWords>& question_keys() {
  const auto words = [](const char* key, std::string QuestionWords::* part) {
    return JsonKey<QuestionWords>{key, a("string"), "",
                                  [part](const auto& of) { return of.*part; }};
  };
  using Of = QuestionWords;
  static const JsonKeys<Of> keys{words("model", &Of::model), words("cluster", &Of::cluster),
                                 words("data", &Of::data), words("software", &Of::software),
                                 words("accuracy", &Of::accuracy)};
  return keys;
}

const JsonKeys<TargetFound>& target_keys() {
  using Of = TargetFound;
  static const JsonKeys<Of> keys{
      {"framework", a("string"), "the framework",
       [](const Of& of) { return json(name(of.target.target)); }},
      {"version", or_null(a("string")), "of the framework; null: the newest that is known",
       [](const Of& of) {
         return of.target.version ? json(version_text(*of.target.version)) : json();
       }},
      {"runs", a("boolean"), "it can run the rows of the answer; false: none that was searched",
       [](const Of& of) { return json(of.runs); }},
      {"best", or_null(a("string")),
       "the best layout of all, in words; null: row 1, which it can run",
       [](const Of& of) { return of.best.empty() ? json() : json(of.best); }},
      {"best_step_seconds", or_null(a("number")), "of that layout",
       [](const Of& of) { return of.best.empty() ? json() : json(of.best_step.count()); }},
      {"slower", a("number"), "relative difference of row 1's step from that of the best layout",
       [](const Of& of) { return json(of.slower); }},
      {"missing", list_of(a("string")),
       "what the best layout needs and the framework does not have",
       [](const Of& of) { return json(of.missing); }}};
  return keys;
}

}  // namespace

json to_json(const Candidate& candidate, const Model& model) {
  return object_of(candidate_keys(), CandidateOf{candidate, model});
}

json to_json(const Sweep& sweep, const Model& model) {
  return object_of(sweep_keys(), SweepOf{sweep, model});
}

json to_json(const QuestionWords& words) { return object_of(question_keys(), words); }

json to_json(const TargetFound& found) { return object_of(target_keys(), found); }

json candidate_definitions() {
  json definitions = layout_definitions();
  definitions["candidate"] = schema_of(candidate_keys(), "one layout of the answer");
  return definitions;
}

json sweep_schema_value() {
  json root = schema_of(sweep_keys(), "the ranking of layouts found by a search");
  root["properties"]["goal"] = goal_schema();
  json& question = root["properties"]["question"] = a("object");
  question["description"] = "what was asked, in words";
  for (const JsonKey<QuestionWords>& key : question_keys())
    question["properties"][key.name] = key.schema;
  root["properties"]["target"] =
      schema_of(target_keys(), "what a search for the framework of --for found");
  const json what_if = schema_of(what_if_keys(), "");  // with --set
  root["properties"].update(what_if["properties"]);
  return root;
}

std::string sweep_schema() {
  return schema_document("polyphony sweep --format json", sweep_schema_value(),
                         candidate_definitions());
}

}  // namespace polyphony::sim
