#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/answer_json/answer_schema.h"
#include "sim/evidence/watch.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<WatchEvent>& event_keys() {
  static const JsonKeys<WatchEvent> keys = {
      {"what", a("string"), "left, back, drifted or slow_rank",
       [](const WatchEvent& e) { return json(name(e.what)); }},
      {"step", a("integer"), "step at which it happened",
       [](const WatchEvent& e) { return json(e.step); }},
      {"told", a("integer"), "step at which it was detected",
       [](const WatchEvent& e) { return json(e.told); }},
      {"ratio", a("number"),
       "measured over predicted, over earlier steps, or over the ranks' median",
       [](const WatchEvent& e) { return json(e.ratio); }},
      {"phase", or_null(a("string")), "phase that deviates most; null: the log has no phases",
       [](const WatchEvent& e) { return e.phase.empty() ? json() : json(e.phase); }},
      {"rank", or_null(a("integer")), "the slow rank",
       [](const WatchEvent& e) { return e.rank < 0 ? json() : json(e.rank); }}};
  return keys;
}

struct Watched {
  const WatchReport& report;
  const Expected& expected;
};
const JsonKeys<Watched>& watched_keys() {
  static const JsonKeys<Watched> keys = {
      {"left", a("boolean"), "whether the job ever left the predicted interval",
       [](const Watched& w) { return json(w.report.left()); }},
      {"outside", a("boolean"), "whether the job is outside the interval at the end",
       [](const Watched& w) { return json(w.report.outside); }},
      {"steps", a("integer"), "number of steps in the log",
       [](const Watched& w) { return json(w.report.steps); }},
      {"warm_up", a("integer"), "number of warm-up steps, which are not evaluated",
       [](const Watched& w) { return json(w.report.warm_up); }},
      {"step_seconds", a("number"), "median of the last ten steps",
       [](const Watched& w) { return json(w.report.typical.count()); }},
      {"predicted_seconds", a("number"), "predicted step time",
       [](const Watched& w) { return json(w.expected.step.count()); }},
      {"interval90_seconds", low_and_high(), "predicted 90 % interval of the step time",
       [](const Watched& w) { return json{w.expected.low.count(), w.expected.high.count()}; }},
      {"events", list_of(schema_of(event_keys(), "one event")), "in the order of detection",
       [](const Watched& w) { return array_of(event_keys(), w.report.events); }}};
  return keys;
}

}  // namespace

Expected read_expected(const std::string& text, const std::string& file) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(file, "", what, "give the output of `polyphony simulate --format json`");
  };
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) refuse("is not JSON");
  Expected expected;
  try {
    expected.step = Seconds(root.at("step_seconds").get<double>());
    const json& bounds = root.at("chance").at("interval90_seconds");
    expected.low = Seconds(bounds.at(0).get<double>());
    expected.high = Seconds(bounds.at(1).get<double>());
    expected.tokens_per_second_per_rank = root.at("tokens_per_second_per_rank").get<double>();
    for (const auto& [phase, seconds] : root.at("busiest_rank_seconds").items())
      expected.phases[phase] = Seconds(seconds.get<double>());
  } catch (const json::exception&) {
    refuse("is not a prediction of a step");
  }
  if (!(expected.step > Seconds(0)) || !(expected.low <= expected.step) ||
      !(expected.step <= expected.high) || !std::isfinite(expected.high.count()))
    refuse("predicts a step time outside its own interval");
  return expected;
}

json to_json(const WatchReport& report, const Expected& expected) {
  return object_of(watched_keys(), Watched{report, expected});
}

std::string watch_schema() {
  return schema_document("polyphony watch",
                         schema_of(watched_keys(), "a job compared with its prediction"),
                         json::object());
}

}  // namespace polyphony::sim
