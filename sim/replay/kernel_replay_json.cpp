#include "sim/replay/kernel_replay_json.h"

#include "sim/answer_json/answer_schema.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json times_of(const traces::DeviceTimes& times) {
  json classes = json::object();
  for (std::size_t kind = 0; kind < times.classes.size(); ++kind)
    if (times.classes[kind].count > 0)
      classes[traces::name(static_cast<traces::KernelClass>(kind))] =
          Seconds(times.classes[kind].wall).count();
  classes["idle"] = Seconds(times.idle).count();
  return classes;
}

const JsonKeys<PathDifference>& path_keys() {
  using Of = PathDifference;
  static const JsonKeys<Of> keys{{"class", a("string"), "class of kernels, or what they wait for",
                                  [](const Of& of) { return of.label; }},
                                 {"seconds", a("number"), "on the longest path, per step",
                                  [](const Of& of) { return of.before.count(); }}};
  return keys;
}

const JsonKeys<PathDifference>& kernel_difference_keys() {
  using Of = PathDifference;
  static const JsonKeys<Of> keys{{"class", a("string"), "class of kernels, or what they wait for",
                                  [](const Of& of) { return of.label; }},
                                 {"before_seconds", a("number"), "on the longest path, per step",
                                  [](const Of& of) { return of.before.count(); }},
                                 {"after_seconds", a("number"), "on the longest path, per step",
                                  [](const Of& of) { return of.after.count(); }}};
  return keys;
}

using Mixed = traces::Mixture::value_type;

const JsonKeys<Mixed>& kernel_mixture_keys() {
  using Of = Mixed;
  const auto seconds = [](const Of& of, traces::Origin origin) {
    return of.second[static_cast<std::size_t>(origin)].count();
  };
  static const JsonKeys<Of> keys{
      {"class", a("string"), "class of kernels", [](const Of& of) { return of.first; }},
      {"measured_seconds", a("number"), "of kernels that keep their measured times",
       [=](const Of& of) { return seconds(of, traces::Origin::measured); }},
      {"scaled_seconds", a("number"), "of kernels with measured times scaled by the change",
       [=](const Of& of) { return seconds(of, traces::Origin::scaled); }}};
  return keys;
}

const JsonKeys<PlayedKernels>& played_keys() {
  using Of = PlayedKernels;
  static const JsonKeys<Of> keys{
      {"step_seconds", a("number"), "median over the steps",
       [](const Of& of) { return of.steps.median.count(); }},
      {"steps_seconds", low_and_high(), "10th and 90th percentile of the steps",
       [](const Of& of) { return json{of.steps.p10.count(), of.steps.p90.count()}; }},
      {"ranks_seconds", list_of(a("number")), "median step by rank, from the rank's own events",
       [](const Of& of) {
         json ranks = json::array();
         for (const Seconds step : of.ranks) ranks.push_back(step.count());
         return ranks;
       }},
      {"classes_seconds", list_of(map_of(a("number"))),
       "by rank, over all steps: wall time by class, and idle time; they add up to the span",
       [](const Of& of) {
         json ranks = json::array();
         for (const traces::DeviceTimes& times : of.times) ranks.push_back(times_of(times));
         return ranks;
       }},
      {"overlapped_seconds", list_of(a("number")),
       "communication overlapped with computation, by rank",
       [](const Of& of) {
         json ranks = json::array();
         for (const traces::DeviceTimes& times : of.times)
           ranks.push_back(Seconds(times.overlapped).count());
         return ranks;
       }},
      {"critical_path", list_of(schema_of(path_keys(), "a class")),
       "seconds by class; they add up to the mean step",
       [](const Of& of) { return array_of(path_keys(), of.path); }},
      {"times_from", list_of(schema_of(kernel_mixture_keys(), "durations of a class of kernels")),
       "origin of the durations by class, over all ranks and steps", [](const Of& of) {
         json rows = json::array();
         for (const Mixed& row : of.mixture) rows.push_back(object_of(kernel_mixture_keys(), row));
         return rows;
       }}};
  return keys;
}

const JsonKeys<KernelReplayAnswer>& kernel_answer_keys() {
  using Of = KernelReplayAnswer;
  static const JsonKeys<Of> keys{
      {"traces", list_of(a("string")), "trace files, by rank",
       [](const Of& of) { return of.files; }},
      {"ranks", list_of(a("integer")), "numbers of the recorded ranks",
       [](const Of& of) { return of.ranks; }},
      {"world", a("integer"), "number of ranks of the job",
       [](const Of& of) { return of.world ? std::optional<json>(*of.world) : std::nullopt; },
       false},
      {"device", a("string"), "name of the device", [](const Of& of) { return of.device; }},
      {"changes", list_of(a("string")), "the changes, as on the command line",
       [](const Of& of) { return of.said; }},
      {"steps", a("integer"), "number of recorded steps",
       [](const Of& of) { return of.measured.count; }},
      {"measured_seconds", a("number"), "median of the recorded steps",
       [](const Of& of) { return of.measured.median.count(); }},
      {"repeatability", a("number"),
       "half of the interquartile range of the recorded steps, relative",
       [](const Of& of) { return of.measured.repeatability(); }},
      {"replay_error", a("number"), "(replayed unchanged - measured) / measured",
       [](const Of& of) { return of.replay_error; }},
      {"rank_error", a("number"), "largest absolute error of any rank's median step, relative",
       [](const Of& of) { return of.rank_error; }},
      {"before", schema_of(played_keys(), "replayed traces"), "as they were recorded",
       [](const Of& of) { return object_of(played_keys(), of.before); }},
      {"after", schema_of(played_keys(), "replayed traces"), "with the changes",
       [](const Of& of) {
         return of.after ? std::optional<json>(object_of(played_keys(), *of.after)) : std::nullopt;
       },
       false},
      {"step_change", a("number"), "(after - before) / before",
       [](const Of& of) {
         return of.after ? std::optional<json>(of.after->steps.median / of.before.steps.median - 1)
                         : std::nullopt;
       },
       false},
      {"differences", list_of(schema_of(kernel_difference_keys(), "a class")),
       "what explains the change: longest path seconds by class, the largest difference first",
       [](const Of& of) {
         return of.after ? std::optional<json>(array_of(kernel_difference_keys(), of.differences))
                         : std::nullopt;
       },
       false},
      {"notes", list_of(a("string")), "notes for the user", [](const Of& of) { return of.notes; }}};
  return keys;
}

}  // namespace

json to_json(const KernelReplayAnswer& answer) { return object_of(kernel_answer_keys(), answer); }

std::string kernel_replay_schema() {
  return schema_document("polyphony replay TRACE... --format json",
                         schema_of(kernel_answer_keys(), "a replay of a profiler's traces"),
                         json::object());
}

}  // namespace polyphony::sim
