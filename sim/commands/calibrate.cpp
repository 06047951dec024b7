// polyphony calibrate: a profile that explains what was measured, whatever it is.
#include <iostream>

#include "shared/hardware/hardware_json.h"
#include "sim/cli/command.h"
#include "sim/cli/evidence_files.h"
#include "sim/cli/measurements.h"
#include "sim/console/console.h"
#include "sim/evidence/evidence_json.h"
#include "sim/shown_runs/calibration_text.h"
#include "sim/text/layout_words.h"
#include "traces/calibrate/collective_fit.h"

namespace polyphony::sim {
namespace {

// The profile with rings as a table of nccl-tests has them. `file` is used in messages.
HardwareProfile with_table(const HardwareProfile& prior, const Cluster& cluster,
                           const traces::CollectiveTimes& times, const std::string& file) {
  if (prior.collectives == CollectiveLibrary::gloo)
    throw InputError("--nccl-tests", "", prior.name + " has neither NCCL nor RCCL",
                     "a table corrects an accelerator's profile");
  const traces::CollectiveFit fit = traces::fit_collective(prior, cluster, times, file);
  std::cerr << file << ": " << ring_parameter(times) << " " << number_text(fit.before, 3) << " -> "
            << number_text(fit.after, 3) << ", error of its " << fit.rows << " arrays "
            << percent_text(fit.error_before) << " -> " << percent_text(fit.error_after) << "\n";
  return fitted_rings(fit, times);
}

// The profile with rings as profiles have them. Collectives that overlap with others, or wait for
// ranks in each of their runs, tell nothing of the links.
HardwareProfile with_profiled(HardwareProfile prior, const GivenEvidence& given) {
  if (prior.collectives == CollectiveLibrary::gloo) return prior;
  for (const traces::CollectiveTimes& times : given.collectives) try {
      prior = with_table(prior, given.cluster, times, given.profiled);
    } catch (const InputError& error) {
      std::cerr << given.profiled << ": its collectives of " << times.ranks << " ranks on "
                << counted(times.nodes, "node", "nodes") << " are not used: " << error.what_is_wrong
                << "\n";
    }
  return prior;
}

}  // namespace

int calibrate_command(int argc, char** argv) {
  Arguments args(
      "calibrate",
      "Fits a hardware profile to measurements: folders and traces of `polyphony run`, profiles of "
      "GPUs by PyTorch's profiler, logs of Megatron-LM, Megatron-Bridge, torchtitan and DeepSpeed, "
      "a step time, an all-reduce table, in any mix. Parameters that no measurement depends on "
      "keep their prior, and are listed; "
      "measurements that are further off than the profile's errors explain are listed as outliers, "
      "and not fitted.",
      "EVIDENCE...",
      "  polyphony calibrate runs/a --profile machine.json --out calibrated.json\n"
      "  polyphony calibrate slurm-123.out --scenario today.json --stack megatron-bridge --out "
      "ours.json\n"
      "  polyphony calibrate rank-*.pt.trace.json.gz --scenario today.json --stack fsdp2 --out "
      "ours.json\n"
      "  polyphony calibrate --scenario today.json --step-time 12.3s --memory 61GiB --out "
      "ours.json\n"
      "  polyphony calibrate evidence.json --nccl-tests all_reduce.txt --out ours.json\n"
      "  polyphony simulate large.json --profile ours.json\n"
      "An evidence file: {\"evidence\": 1, \"runs\": [{\"scenario\": \"today.json\", "
      "\"step_time\": "
      "\"12.3s\"},\n  {\"scenario\": \"long.json\", \"log\": \"slurm-124.out\"},\n"
      "  {\"scenario\": \"today.json\", \"profiles\": [\"rank-0.json.gz\"]}]}");
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
                     "needs a run, a log, a profile, an evidence file or --step-time",
                     "polyphony calibrate --help shows an example");
  const std::vector<traces::Measurement> measurements = read_measurements(args, given.runs);
  const Scenario& scenario =
      measurements.empty() ? given.steps.front().scenario : measurements.front().scenario;
  HardwareProfile prior = load_profile(scenario, args.profile());
  if (given.profile && (given.profile->device.name != prior.device.name ||
                        given.profile->stack.name != prior.stack.name))
    throw InputError(given.steps.front().source, "",
                     "is of another device or stack than " + measurements.front().source,
                     "fit each separately");
  if (args.has("nccl-tests")) {
    if (!given.collectives.empty())
      std::cerr << given.profiled
                << ": its collectives are not used, --nccl-tests has better ones\n";
    const std::string file = args.text("nccl-tests");
    prior =
        with_table(prior, scenario.cluster, traces::read_nccl_tests(read_file(file), file), file);
  } else {
    prior = with_profiled(prior, given);
  }
  const FittedProfile fitted = fit_profile(prior, measurements, given.steps, args.text("name"));
  if (args.has("out"))
    write_file(args.text("out"), readable_json(fitted.profile, args.text("out")) + "\n");
  if (args.json()) {
    std::cout << to_json(fitted).dump(2) << "\n";
    return 0;
  }
  std::vector<std::string> layouts;
  for (const traces::Measurement& of : measurements)
    layouts.push_back(of.source + ": " +
                      layout_words(of.scenario.model, *of.scenario.layout, of.scenario.cluster));
  if (fitted.runs) std::cout << calibration_text(*fitted.runs, fitted.unseen, layouts);
  if (fitted.steps) std::cout << calibration_text(*fitted.steps);
  if (args.has("out")) std::cerr << "wrote " << args.text("out") << "\n";
  return 0;
}

}  // namespace polyphony::sim
