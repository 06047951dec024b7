#include "sim/evidence/step_evidence.h"

#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "shared/text/figure_text.h"
#include "shared/text/strict_json.h"
#include "sim/evidence/kernel_rows.h"
#include "sim/evidence/quick_step.h"
#include "sim/prediction/figures.h"

namespace polyphony::sim {
namespace {

// Relative deviation of a step time under a profiler, which costs the host time. Assumed.
constexpr double kProfiledNoise = 0.03;

// Throws InputError if a line of the log states another batch size than the scenario.
void check_batch(const traces::FrameworkLog& log, const Scenario& scenario,
                 const std::string& file) {
  for (const auto& attempt : log.attempts)
    for (const traces::LoggedStep& step : attempt)
      if (step.global_batch && *step.global_batch != scenario.data.global_batch)
        throw InputError(file + ":" + std::to_string(step.line), "",
                         "has a global batch of " + std::to_string(*step.global_batch) +
                             ", but the scenario has " + std::to_string(scenario.data.global_batch),
                         "give the scenario of this run (" + scenario.file + ")");
}

// Throws InputError if the trace names another shipped device: "NVIDIA A100-SXM4-80GB" with a
// profile of an H100. Unknown names pass.
void check_device(const traces::DeviceEvidence& trace, const std::string& device) {
  const auto names = [&](const std::string& of) {  // "A100-80" is an A100
    return trace.device.find(of.substr(0, of.find('-'))) != std::string::npos;
  };
  if (trace.device.empty() || names(device)) return;
  for (const ShippedDevice& other : shipped_devices())
    if (names(other.device.name))
      throw InputError(trace.file, "",
                       "was recorded on " + trace.device + ", but the profile is of " + device,
                       "name the device in the scenario's node, or start from its profile");
}

ObjectForm entry_form() {
  return {
      "evidence_run",
      "a run elsewhere",
      {{"scenario", text_form("today.json"), "the scenario that was run, with its layout", true},
       {"step_time", quantity_form(UnitKind::time, "12.3s"), "time of one optimizer step"},
       {"log", text_form("slurm-123.out"), "log of the framework, instead of a step time"},
       {"profiles", list_form(text_form("rank-0.json.gz"), 1),
        "traces of PyTorch's profiler, one of each rank, or reports of Nsight Systems"},
       {"noise", number_form(1e-6, 1), "relative deviation of the step time"},
       {"memory", quantity_form(UnitKind::bytes, "61.2GiB"),
        "peak of allocated memory on any device"},
       {"reserved", quantity_form(UnitKind::bytes, "64GiB"),
        "peak of reserved memory on any device"},
       {"source", text_form("run of May"), "name to show in tables"}},
      {}};
}

}  // namespace

traces::StepWork work_of(const Scenario& scenario, const HardwareProfile& profile) {
  const Prediction prediction = quick_step(scenario, profile);
  return {figures(scenario, prediction).tokens, scenario.data.global_batch,
          scenario.cluster.ranks()};
}

StepEvidence evidence_of_log(const traces::FrameworkLog& log, const Scenario& scenario,
                             const HardwareProfile& profile, const std::string& file) {
  check_batch(log, scenario, file);
  const auto steady = traces::steady_steps(log.attempts, work_of(scenario, profile));
  if (!steady)
    throw InputError(file, "", "contains no step time",
                     "torchtitan's and DeepSpeed's rates need a scenario that has tokens");
  StepEvidence evidence{file,          scenario,     steady->step, steady->noise,
                        log.allocated, log.reserved, log.notes};
  evidence.notes.push_back(
      file + ": " + traces::name(log.framework) + ", " + seconds_text(steady->step) +
      " per step, ±" + percent_text(steady->spread) + " over " + std::to_string(steady->used) +
      " lines; " + std::to_string(steady->left_out) + " warm-up lines omitted");
  return evidence;
}

StepEvidence evidence_of_profiles(const std::vector<traces::DeviceTrace>& traces,
                                  const Scenario& scenario, const HardwareProfile& profile) {
  StepEvidence evidence{traces.front().file, scenario, {}, kProfiledNoise, {}, {}, {}};
  if (traces.size() > 1) evidence.source += " and " + std::to_string(traces.size() - 1) + " more";
  Seconds longest{};
  for (const traces::DeviceTrace& trace : traces) {
    evidence.kernels.push_back(traces::device_evidence(trace));
    check_device(evidence.kernels.back(), profile.device.name);
    longest = std::max(longest, evidence.kernels.back().step);
  }
  const KernelRows rows(evidence, profile);
  evidence.notes = rows.notes();
  if (rows.whole()) evidence.step = longest;
  return evidence;
}

bool is_evidence(const std::string& text, const std::string& file) {
  constexpr std::size_t kMost = 1 << 20;  // larger files are traces, or not ours
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (text.size() > kMost || first == std::string::npos || text[first] != '{') return false;
  const JsonValue root = JsonValue::parse(text, file);
  return root.is_object() && root.has("evidence");
}

std::vector<EvidenceEntry> read_evidence(const std::string& text, const std::string& file) {
  const ObjectForm entry = entry_form();
  const ObjectForm form{"evidence",
                        "measurements of runs elsewhere",
                        {{"evidence", integer_form(1, 1), "version of the format", true},
                         {"about", text_form("two nodes in May"), "a note for readers"},
                         {"runs", list_form(object_form(entry), 1), "one measured run each", true}},
                        {}};
  const JsonValue root = JsonValue::parse(text, file);
  root.check(object_form(form));
  std::vector<EvidenceEntry> entries;
  const JsonValue runs = root.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const JsonValue run = runs.at(i);
    EvidenceEntry& one = entries.emplace_back();
    run.read("scenario", one.scenario);
    run.read("log", one.log);
    run.read("source", one.source);
    if (run.has("profiles"))
      for (std::size_t p = 0; p < run.at("profiles").size(); ++p)
        one.profiles.push_back(run.at("profiles").at(p).text());
    if (Seconds step{}; run.read("step_time", step)) one.step = step;
    if (Bytes bytes{}; run.read("memory", bytes)) one.memory = bytes;
    if (Bytes bytes{}; run.read("reserved", bytes)) one.reserved = bytes;
    if (run.has("noise")) one.noise = run.at("noise").number();
    if (one.step && !(*one.step > Seconds(0)))
      run.refuse_at("step_time", "must be positive", "give the time of one optimizer step");
    if (one.step && !one.log.empty())
      run.refuse("has both a step time and a log", "give only one of them");
    if (!one.profiles.empty() && !one.log.empty())
      run.refuse("has both profiles and a log", "make an entry of each");
    if (!one.step && one.log.empty() && one.profiles.empty() && !one.memory && !one.reserved)
      run.refuse("contains no measurement",
                 "add \"step_time\", \"log\", \"profiles\" or \"memory\"");
  }
  return entries;
}

}  // namespace polyphony::sim
