// polyphony calibrate: a profile that explains recorded runs.
#include <iostream>

#include "shared/hardware/hardware_json.h"
#include "sim/answers/answers_json.h"
#include "sim/commands/command.h"
#include "sim/commands/measurements.h"
#include "sim/console/console.h"
#include "traces/calibrate/calibrate.h"

namespace polyphony::sim {

int calibrate_command(int argc, char** argv) {
  Arguments args(
      "calibrate",
      "Fits a hardware profile to recorded runs: what the traces do not inform keeps its prior.",
      "RUN...",
      "  polyphony calibrate runs/a --profile machine.json --out calibrated.json\n  polyphony "
      "compare runs/b runs/c --profile calibrated.json");
  add_measurement_options(args);
  args.add_profile("prior");
  args.add()("out", "file for the fitted profile", cxxopts::value<std::string>())(
      "name", "name of the fitted profile",
      cxxopts::value<std::string>()->default_value("calibrated"));
  if (args.parse(argc, argv)) return 0;
  if (!args.has("runs"))
    throw InputError("polyphony calibrate", "", "needs at least one RUN",
                     "polyphony calibrate --help shows an example");
  const std::vector<traces::Measurement> measurements = read_measurements(args);
  std::vector<traces::MeasuredRun> measured;
  std::string source = "traces of";
  for (const traces::Measurement& measurement : measurements) {
    measured.push_back(traces::measured_run(measurement));
    source += " " + measurement.source;
  }
  const HardwareProfile prior = load_profile(measurements.front().scenario, args.profile());
  const traces::Calibration fitted =
      traces::calibrate(prior, measured, args.text("name"), prior.software, source);
  if (args.has("out"))
    write_file(args.text("out"), readable_json(fitted.profile, args.text("out")) + "\n");
  if (args.json()) {
    std::cout << to_json(fitted).dump(2) << "\n";
    return 0;
  }
  Table table({"parameter", "prior", "fitted", "+-", "activities"});
  for (const traces::FittedParameter& p : fitted.parameters)
    if (p.informed) {
      char prior_text[32], value_text[32], error_text[32];
      std::snprintf(prior_text, sizeof prior_text, "%.3g", p.prior);
      std::snprintf(value_text, sizeof value_text, "%.3g", p.value);
      std::snprintf(error_text, sizeof error_text, "%.2g", p.standard_error);
      table.add({p.name, prior_text, value_text, error_text,
                 count_text(static_cast<std::int64_t>(p.rows))});
    }
  std::cout << table.text() << "\n";
  Table runs({"run", "measured", "error before", "error after", "repeatability", "by its jitter"});
  for (const traces::RunError& r : fitted.runs)
    runs.add({r.label, seconds_text(r.measured), percent_text(r.before), percent_text(r.after),
              "±" + percent_text(r.repeatability),
              r.jitter_repeatability ? "±" + percent_text(*r.jitter_repeatability) : "?"});
  std::cout << runs.text();
  for (const traces::RunError& r : fitted.runs)
    if (!r.shared_cores.empty())
      std::cout << "shared cores in " << r.label << ": " << traces::describe(r.shared_cores)
                << ". Its ops are judged by their processor time, its step is not; measure it "
                   "again on an idle machine\n";
  if (const auto& jitter = fitted.profile.certainty.jitter) {
    std::cout << "\njitter over " << jitter->steps << " steps: common to a step, of single ops\n";
    for (std::size_t kind = 0; kind < kActivityKinds; ++kind)
      std::cout << "  " << name(static_cast<ActivityKind>(kind)) << " ±"
                << percent_text(jitter->of[kind].step) << ", ±" << percent_text(jitter->of[kind].op)
                << "\n";
  } else {
    std::cout << "\njitter: not known, no run has four steps\n";
  }
  if (args.has("out")) std::cerr << "wrote " << args.text("out") << "\n";
  return 0;
}

}  // namespace polyphony::sim
