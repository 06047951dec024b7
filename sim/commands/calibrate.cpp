// polyphony calibrate: a profile that explains what was measured, whatever it is.
#include <iostream>

#include "shared/hardware/hardware_json.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/evidence_files.h"
#include "sim/cli/measurements.h"
#include "sim/console/console.h"
#include "sim/evidence/evidence_json.h"
#include "sim/shown/calibration_text.h"
#include "traces/calibrate/calibrate.h"
#include "traces/calibrate/collective_fit.h"

namespace polyphony::sim {
namespace {

// The rings of a profile as a table of nccl-tests has them, as sure as its rows agree.
HardwareProfile with_table(const HardwareProfile& prior, const Cluster& cluster,
                           const std::string& file) {
  const traces::CollectiveTimes times = traces::read_nccl_tests(read_file(file), file);
  if (!prior.nccl)
    throw InputError("--nccl-tests", "", prior.name + " has no NCCL",
                     "a table corrects an accelerator's profile");
  const traces::CollectiveFit fit = traces::fit_collective(prior, cluster, times, file);
  HardwareProfile profile = fit.profile;
  const std::string key = times.nodes > 1 ? "fabric_efficiency" : "collective_efficiency";
  std::erase_if(profile.certainty.errors, [&](const ParameterError& error) {
    return error.size() == 1 && error.begin()->first == key;
  });
  profile.certainty.errors.push_back({{key, std::max(0.02, fit.error_after)}});
  std::cerr << file << ": " << key << " " << number_text(fit.before, 3) << " -> "
            << number_text(fit.after, 3) << ", error of its " << fit.rows << " arrays "
            << percent_text(fit.error_before) << " -> " << percent_text(fit.error_after) << "\n";
  return profile;
}

struct Fitted {
  std::optional<traces::Calibration> runs;
  std::vector<double> unseen;  // by run: error of a fit to the others
  std::optional<StepCalibration> steps;
  HardwareProfile profile;
};

traces::Calibration fit_runs(const HardwareProfile& prior,
                             const std::vector<traces::Measurement>& measurements,
                             const Arguments& args, Fitted& fitted) {
  std::vector<traces::MeasuredRun> measured;
  std::string source = "traces of";
  for (const traces::Measurement& measurement : measurements) {
    measured.push_back(traces::measured_run(measurement));
    source += " " + measurement.source;
  }
  const auto fit = [&](const HardwareProfile& from, const std::vector<traces::MeasuredRun>& runs) {
    return traces::calibrate(from, runs, args.text("name"), prior.software, source);
  };
  for (std::size_t out = 0; out < measured.size() && measured.size() > 1; ++out) {
    std::vector<traces::MeasuredRun> others = measured;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    fitted.unseen.push_back(fit(fit(prior, others).profile, {measured[out]}).runs.front().before);
  }
  return fit(prior, measured);
}

}  // namespace

int calibrate_command(int argc, char** argv) {
  Arguments args(
      "calibrate",
      "Fits a hardware profile to measurements: folders and traces of `polyphony run`, logs of "
      "Megatron-LM, Megatron-Bridge, torchtitan and DeepSpeed, a step time, an all-reduce table, "
      "in "
      "any mix. Parameters that no measurement depends on keep their prior, and are listed; "
      "measurements that are further off than the profile's errors explain are listed as outliers, "
      "and not fitted.",
      "EVIDENCE...",
      "  polyphony calibrate runs/a --profile machine.json --out calibrated.json\n"
      "  polyphony calibrate slurm-123.out --scenario today.json --stack megatron-bridge --out "
      "ours.json\n"
      "  polyphony calibrate --scenario today.json --step-time 12.3s --memory 61GiB --out "
      "ours.json\n"
      "  polyphony calibrate evidence.json --nccl-tests all_reduce.txt --out ours.json\n"
      "  polyphony simulate large.json --profile ours.json\n"
      "An evidence file: {\"evidence\": 1, \"runs\": [{\"scenario\": \"today.json\", "
      "\"step_time\": "
      "\"12.3s\"},\n  {\"scenario\": \"long.json\", \"log\": \"slurm-124.out\"}]}");
  add_measurement_options(args);
  add_evidence_options(args);
  args.add_profile("profile to start from (prior)");
  args.add()("out", "file for the fitted profile", cxxopts::value<std::string>())(
      "nccl-tests", "the output of all_reduce_perf or a like test on the cluster, with its header",
      cxxopts::value<std::string>())("name", "name of the fitted profile",
                                     cxxopts::value<std::string>()->default_value("calibrated"));
  if (args.parse(argc, argv)) return 0;
  const GivenEvidence given = read_given_evidence(args, args.profile());
  if (given.runs.empty() && given.steps.empty())
    throw InputError("polyphony calibrate", "",
                     "needs a run, a log, an evidence file or --step-time",
                     "polyphony calibrate --help shows an example");
  const std::vector<traces::Measurement> measurements = read_measurements(args, given.runs);
  const Scenario& scenario =
      measurements.empty() ? given.steps.front().scenario : measurements.front().scenario;
  Fitted fitted;
  fitted.profile = load_profile(scenario, args.profile());
  if (given.profile && (given.profile->device.name != fitted.profile.device.name ||
                        given.profile->stack.name != fitted.profile.stack.name))
    throw InputError(given.steps.front().source, "",
                     "is of another device or stack than " + measurements.front().source,
                     "fit each separately");
  if (args.has("nccl-tests"))
    fitted.profile = with_table(fitted.profile, scenario.cluster, args.text("nccl-tests"));
  if (!measurements.empty()) {
    fitted.runs = fit_runs(fitted.profile, measurements, args, fitted);
    fitted.profile = fitted.runs->profile;
  }
  if (!given.steps.empty()) {
    fitted.steps = calibrate_steps(fitted.profile, given.steps, args.text("name"));
    fitted.profile = fitted.steps->profile;
  }
  if (args.has("out"))
    write_file(args.text("out"), readable_json(fitted.profile, args.text("out")) + "\n");
  if (args.json()) {
    nlohmann::json json = fitted.runs ? to_json(*fitted.runs) : nlohmann::json::object();
    if (!fitted.unseen.empty()) json["unseen"] = fitted.unseen;
    if (fitted.steps) json.update(to_json(*fitted.steps));
    std::cout << json.dump(2) << "\n";
    return 0;
  }
  if (fitted.runs) std::cout << calibration_text(*fitted.runs, fitted.unseen);
  if (fitted.steps) std::cout << calibration_text(*fitted.steps);
  if (args.has("out")) std::cerr << "wrote " << args.text("out") << "\n";
  return 0;
}

}  // namespace polyphony::sim
