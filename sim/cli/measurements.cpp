#include "sim/cli/measurements.h"

#include <filesystem>
#include <iostream>

#include "shared/files/pieces.h"
#include "shared/files/run_paths.h"
#include "sim/console/console.h"
#include "traces/evidence/run_folder.h"
#include "traces/evidence/trace_files.h"
#include "traces/kineto/kineto.h"
#include "traces/nsys/nsys.h"

namespace polyphony::sim {

traces::Files disk_files() {
  return {read_records, [](const std::string& path) { return std::filesystem::exists(path); },
          [](Scenario& scenario) { read_samples(scenario); }};
}

void add_measurement_options(Arguments& args) {
  args.add()(
      "runs",
      "folders of `polyphony run --trace-steps` and `rehearse`; or trace files (also of --kineto) "
      "of all ranks of one run, with --scenario",
      cxxopts::value<std::vector<std::string>>())(
      "scenario", "scenario file, with its layout, that trace files belong to",
      cxxopts::value<std::string>());
  args.add_phase();
  args.positional({"runs"});
}

void add_bar(Arguments& args) {
  args.add()("bar",
             "largest relative error that passes (0.1 is 10 %), or twice the repeatability if that "
             "is more; a run whose own steps vary by more than this is undecided, unless its error "
             "is more than twice the repeatability",
             cxxopts::value<double>()->default_value("0.1"));
}

std::vector<traces::Measurement> read_measurements(const Arguments& args) {
  return read_measurements(args, args.texts("runs"));
}

std::vector<traces::Measurement> read_measurements(const Arguments& args,
                                                   const std::vector<std::string>& paths) {
  std::vector<traces::Measurement> measurements;
  std::vector<std::string> traces;
  for (const std::string& path : paths) {
    if (std::filesystem::is_regular_file(path)) {
      traces.push_back(path);
      continue;
    }
    measurements.push_back(traces::read_run_folder(path, disk_files()));
    print_notes(measurements.back().scenario, measurements.back().scenario.notes);
    if (!measurements.back().note.empty())
      std::cerr << path << ": " << measurements.back().note << "\n";
  }
  if (traces.empty()) return measurements;
  if (!args.has("scenario"))
    throw InputError(traces.front(), "", "is a trace file: it needs its scenario",
                     "name it with --scenario FILE, or give the folder of the run");
  const Scenario scenario = open_scenario(args);
  measurements.push_back(traces::read_trace_files(
      traces, scenario, load_profile(scenario, args.profile()), disk_files()));
  if (!measurements.back().note.empty())
    std::cerr << measurements.back().source << ": " << measurements.back().note << "\n";
  return measurements;
}

namespace {

// Returns the profiles in a run's folder.
std::vector<std::string> profiles_of_run(const std::string& folder) {
  const RunPaths run{folder};
  const auto steps = run.profiles();
  if (steps.empty())
    throw InputError(folder, "", "holds no profiles",
                     "`polyphony run --kineto STEP` records some in its folder kineto");
  if (steps.size() > 1)
    throw InputError(folder, "", "holds profiles of " + std::to_string(steps.size()) + " steps",
                     "name those of one: " + run.kineto() + "/step-" +
                         std::to_string(steps.begin()->first) + ".rank-*");
  return steps.begin()->second;
}

// Numbers the traces in the order given if one of several does not state its rank, as most reports
// of Nsight Systems do.
void number_reports(std::vector<traces::DeviceTrace>& found) {
  if (found.size() < 2 ||
      std::all_of(found.begin(), found.end(), [](const traces::DeviceTrace& trace) {
        return trace.rank || !trace.file.ends_with(".sqlite");
      }))
    return;
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].rank = static_cast<int>(i);
    found[i].numbered = true;
  }
  found.front().notes.emplace_back(
      "ranks are not stated: the processes are numbered in the order given");
}

}  // namespace

bool is_report(const std::string& path) {
  for (const char* ending : {".nsys-rep", ".qdrep"})
    if (path.ends_with(ending))
      throw InputError(path, "", "is a report of Nsight Systems in its own format",
                       "export it: nsys export --type sqlite " + path);
  if (!std::filesystem::is_regular_file(path)) return false;  // a pipe cannot be read twice
  constexpr std::size_t kHead = 16;
  std::string head(kHead, '\0');
  head.resize(FilePieces(path).read(head.data(), kHead));
  return traces::is_sqlite(head);
}

traces::RankSet read_profiles(const std::vector<std::string>& paths, const std::string& step,
                              const std::string& progress) {
  std::vector<std::string> files;
  for (const std::string& path : paths)
    if (!std::filesystem::is_directory(path))
      files.push_back(path);
    else
      for (const std::string& file : profiles_of_run(path)) files.push_back(file);
  std::vector<traces::DeviceTrace> found;
  Progress shown(progress);
  for (const std::string& path : files) {
    shown.show(static_cast<double>(found.size()) / static_cast<double>(files.size()), path);
    if (is_report(path)) {
      for (traces::DeviceTrace& trace : traces::read_nsys(path, step))
        found.push_back(std::move(trace));
      continue;
    }
    FilePieces file(path, "a trace of PyTorch's profiler, .json or .json.gz");
    found.push_back(traces::read_kineto(
        [&](char* into, std::size_t most) { return file.read(into, most); }, path, {step}));
  }
  number_reports(found);
  return traces::rank_set(std::move(found));
}

void print_notes(const traces::RankSet& ranks) {
  for (const traces::DeviceTrace& trace : ranks.traces)
    for (const std::string& note : trace.notes) std::cerr << trace.file << ": " << note << "\n";
  for (const std::string& note : ranks.notes) std::cerr << note << "\n";
}

}  // namespace polyphony::sim
