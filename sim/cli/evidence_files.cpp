#include "sim/cli/evidence_files.h"

#include <filesystem>
#include <iostream>

#include "shared/files/pieces.h"
#include "shared/text/quantity_text.h"
#include "sim/cli/measurements.h"
#include "sim/console/console.h"
#include "traces/evidence/device_collectives.h"
#include "traces/import/framework_log.h"
#include "traces/kineto/kineto.h"

namespace polyphony::sim {
namespace {

// Chrome traces are JSON, packed or not: an object, or a list of objects. A log's first line may
// begin with "[2026-04-13 23:41:12]" or "[rank0]:".
bool is_trace(const std::string& text) {
  if (text.starts_with("\x1f\x8b")) return true;
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '[')
    first = text.find_first_not_of(" \t\r\n", first + 1);
  return first != std::string::npos && text[first] == '{';
}

bool is_profile_of_others(const std::string& path) {
  if (is_report(path)) return true;
  FilePieces file(path);
  return traces::is_profile_of_others(
      [&](char* into, std::size_t most) { return file.read(into, most); }, path);
}

std::string beside(const std::string& file, const std::string& path) {
  const std::filesystem::path given(path);
  return given.is_absolute() ? path : (std::filesystem::path(file).parent_path() / given).string();
}

Bytes bytes_of(const Arguments& args, const std::string& option) {
  try {
    return parse_bytes(args.text(option));
  } catch (const InputError& error) {
    throw InputError("--" + option, "", error.what_is_wrong, error.hint);
  }
}

class Reader {
 public:
  Reader(const Arguments& args, const ProfileChoice& profile) : args_(args), profile_(profile) {}

  void add(const std::string& path) {
    if (!std::filesystem::exists(path))
      throw InputError(path, "", "no such file or folder", "check the path");
    if (!std::filesystem::is_regular_file(path)) return given_.runs.push_back(path);
    if (is_profile_of_others(path)) return profiles_.push_back(path);
    const std::string text = read_file(path);
    if (is_evidence(text, path)) return add_entries(text, path);
    if (is_trace(text)) return given_.runs.push_back(path);
    if (!args_.has("scenario"))
      throw InputError(path, "", "is a log: it needs its scenario",
                       "name it with --scenario FILE, or in an evidence file");
    add_log(text, path, open_scenario(args_), path);
  }

  // The numbers on the command line are of the same run as the profiles.
  void add_number() {
    const bool given = args_.has("step-time") || args_.has("memory");
    if (!given && profiles_.empty()) return;
    if (!args_.has("scenario"))
      throw InputError(
          profiles_.empty() ? "--step-time" : profiles_.front(), "",
          profiles_.empty() ? "needs its scenario" : "is a profile: it needs its scenario",
          "name it with --scenario FILE, or in an evidence file");
    StepEvidence one{"--step-time", open_scenario(args_), {}, traces::kLeastNoise, {}, {}, {}};
    if (!profiles_.empty()) one = of_profiles(profiles_, one.scenario);
    if (args_.has("step-time")) {
      try {
        one.step = parse_seconds(args_.text("step-time"));
      } catch (const InputError& error) {
        throw InputError("--step-time", "", error.what_is_wrong, error.hint);
      }
      if (!(*one.step > Seconds(0)))
        throw InputError("--step-time", "", "must be above 0", "such as --step-time 12.3s");
      one.noise = traces::kLeastNoise;
    }
    if (args_.has("memory")) one.memory = bytes_of(args_, "memory");
    take(std::move(one));
  }

  GivenEvidence finish() { return std::move(given_); }

 private:
  StepEvidence of_profiles(const std::vector<std::string>& paths, const Scenario& scenario) {
    const traces::RankSet ranks = read_profiles(paths, args_.text("step"), "calibrate");
    print_notes(ranks);
    if (given_.collectives.empty()) {
      given_.collectives = traces::collective_times(ranks, scenario.cluster.ranks_per_node);
      given_.profiled = paths.front();
      given_.cluster = scenario.cluster;
    }
    StepEvidence one =
        evidence_of_profiles(ranks.traces, scenario, load_profile(scenario, profile_));
    for (const std::string& note : one.notes) std::cerr << note << "\n";
    return one;
  }

  void add_entries(const std::string& text, const std::string& file) {
    for (const EvidenceEntry& entry : read_evidence(text, file)) {
      const Scenario scenario = open_scenario(beside(file, entry.scenario));
      const std::string source = !entry.source.empty() ? entry.source
                                 : !entry.log.empty()  ? entry.log
                                                       : file;
      if (!entry.profiles.empty()) {
        std::vector<std::string> paths;
        for (const std::string& path : entry.profiles) paths.push_back(beside(file, path));
        StepEvidence one = of_profiles(paths, scenario);
        if (!entry.source.empty()) one.source = entry.source;
        if (entry.step) one.step = entry.step, one.noise = traces::kLeastNoise;
        if (entry.noise) one.noise = *entry.noise;
        one.memory = entry.memory;
        one.reserved = entry.reserved;
        take(std::move(one));
      } else if (!entry.log.empty()) {
        const std::string log = beside(file, entry.log);
        add_log(read_file(log), log, scenario, source, &entry);
      } else {
        StepEvidence one{
            source,       scenario,       entry.step, entry.noise.value_or(traces::kLeastNoise),
            entry.memory, entry.reserved, {}};
        take(std::move(one));
      }
    }
  }

  void add_log(const std::string& text, const std::string& file, const Scenario& scenario,
               const std::string& source, const EvidenceEntry* entry = nullptr) {
    const traces::FrameworkLog log = traces::read_framework_log(text, file);
    StepEvidence one = evidence_of_log(log, scenario, load_profile(scenario, profile_), file);
    one.source = source;
    if (entry && entry->noise) one.noise = *entry->noise;
    if (entry && entry->memory) one.memory = entry->memory;
    if (entry && entry->reserved) one.reserved = entry->reserved;
    for (const std::string& note : one.notes) std::cerr << note << "\n";
    take(std::move(one));
  }

  // One profile is fitted: of one device, under one stack.
  void take(StepEvidence one) {
    const HardwareProfile profile = load_profile(one.scenario, profile_);
    if (!given_.profile) given_.profile = profile;
    if (profile.device.name != given_.profile->device.name ||
        profile.stack.name != given_.profile->stack.name)
      throw InputError(one.source, "",
                       "is of " + profile.device.name + " under " + profile.stack.name +
                           ", other evidence of " + given_.profile->device.name + " under " +
                           given_.profile->stack.name,
                       "fit each separately; --stack NAME sets one stack for all of it");
    given_.steps.push_back(std::move(one));
  }

  const Arguments& args_;
  ProfileChoice profile_;
  GivenEvidence given_;
  std::vector<std::string> profiles_;
};

}  // namespace

void add_evidence_options(Arguments& args) {
  args.add()("step-time", "a step time of the scenario's layout, such as 12.3s",
             cxxopts::value<std::string>())(
      "memory", "peak memory allocated on a device in that step, such as 61GiB",
      cxxopts::value<std::string>())(
      "step", "how the names of the annotations begin that mark steps in profiles",
      cxxopts::value<std::string>()->default_value("ProfilerStep#"));
}

GivenEvidence read_given_evidence(const Arguments& args, const ProfileChoice& profile) {
  Reader reader(args, profile);
  if (args.has("runs"))
    for (const std::string& path : args.texts("runs")) reader.add(path);
  reader.add_number();
  return reader.finish();
}

}  // namespace polyphony::sim
