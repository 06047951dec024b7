#include "sim/commands/profile_verbs.h"

#include <cmath>
#include <iostream>

#include "shared/chance/belief.h"
#include "shared/hardware/device_file_json.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/parameter.h"
#include "shared/hardware/roofline.h"
#include "shared/hardware/shipped_certainty.h"
#include "shared/statistics.h"
#include "sim/cli/command.h"
#include "sim/cli/evidence_files.h"
#include "sim/cli/measurements.h"
#include "sim/console/console.h"
#include "sim/evidence/evidence_json.h"
#include "sim/evidence/profile_tables.h"
#include "sim/evidence/quick_step.h"
#include "sim/shown/calibration_text.h"
#include "sim/shown/profile_text.h"
#include "traces/calibrate/merge_profiles.h"

namespace polyphony::sim {
namespace {

// A shipped profile's name, a device's, or a file of either, under a shipped stack if one is named.
HardwareProfile named(const std::string& name, const std::string& stack) {
  HardwareProfile profile;
  std::optional<ShippedDevice> own;
  if (const HardwareProfile* shipped = find_profile(name)) {
    profile = *shipped;
  } else if (const ShippedDevice* device = find_device(name)) {
    profile = *find_profile(default_profile(device->device.name));
  } else if (!is_profile_file(name)) {
    throw InputError(name, "", "is no profile, device or file", suggest(name, profile_names()));
  } else {
    const std::string text = read_file(name);
    own = own_device_in(text, name);
    if (!own) return parse_profile(text, name);
    profile = roofline_profile(*own);
  }
  if (stack.empty()) return profile;
  const SoftwareStack* found = find_stack(stack);
  if (found == nullptr)
    throw InputError("--stack", "", "no software stack \"" + stack + "\" ships with the program",
                     suggest(stack, stack_names()));
  profile.stack = *found;
  if (own && own->fit) state_certainty(profile, *own->fit);
  if (!own) state_certainty(profile);
  return profile;
}

std::string deviation_text(const std::optional<double>& deviation) {
  return deviation ? "±" + percent_text(*deviation) : "not stated";
}

int show(const Arguments& args, const std::vector<std::string>& names) {
  const HardwareProfile profile = named(names.at(0), args.text("stack"));
  if (args.json()) return std::cout << shown_json(profile).dump(2) << "\n", 0;
  std::cout << describe(profile) << ", device " << profile.device.name
            << "\nnumbers: " << profile.source << "\n";
  if (!profile.certainty.source.empty())
    std::cout << "errors: " << profile.certainty.source << "\n";
  if (const std::string text = footing_text(profile); !text.empty()) std::cout << text << "\n";
  Table table({"parameter", "value", "+-"});
  for (const ShownParameter& p : parameters_of(profile))
    table.add({p.key, parameter_text(p.key, p.value), deviation_text(p.deviation)});
  std::cout << "\n"
            << table.text(screen_columns())
            << "error that no parameter explains: " << deviation_text(profile.certainty.residual)
            << "; 90 % interval of a step: ±" << percent_text(profile.step_error) << "; jitter "
            << (profile.certainty.jitter ? "known" : "not known") << "\n";
  for (const std::string& line : implausible(profile)) std::cout << "implausible: " << line << "\n";
  return 0;
}

int diff(const Arguments& args, const std::vector<std::string>& names) {
  const HardwareProfile first = named(names.at(0), args.text("stack")),
                        second = named(names.at(1), args.text("stack"));
  if (args.json()) return std::cout << difference_json(first, second).dump(2) << "\n", 0;
  for (const HardwareProfile* one : {&first, &second})
    std::cout << describe(*one) << ", device " << one->device.name << "\n";
  Table table({"parameter", "first", "second", "change", "standard deviations apart"});
  for (const ParameterDifference& d : differences_of(first, second))
    table.add({d.key, parameter_text(d.key, d.first), parameter_text(d.key, d.second),
               d.first > 0 ? signed_percent_text(d.second / d.first - 1) : "",
               d.deviations ? number_text(std::abs(*d.deviations), 1) : "?"});
  std::cout << table.text();
  return 0;
}

int merge(const Arguments& args, const std::vector<std::string>& names) {
  const HardwareProfile first = named(names.at(0), args.text("stack")),
                        second = named(names.at(1), args.text("stack"));
  std::optional<HardwareProfile> origin;
  if (args.has("origin")) origin = named(args.text("origin"), first.stack.name);
  const HardwareProfile merged = traces::merge_profiles(first, second, origin, args.text("name"));
  const std::string out = args.require("out");
  write_file(out, readable_json(merged, out) + "\n");
  if (args.json()) return std::cout << shown_json(merged).dump(2) << "\n", 0;
  const auto a = parameter_deviations(first.certainty), b = parameter_deviations(second.certainty);
  const auto text = [](const auto& deviations, const std::string& key) {
    const auto found = deviations.find(key);
    return found == deviations.end() ? std::string("not stated")
                                     : "±" + percent_text(found->second);
  };
  Table table({"parameter", "first", "+-", "second", "+-", "merged", "+-"});
  for (const ShownParameter& p : parameters_of(merged))
    if (p.deviation)
      table.add({p.key, parameter_text(p.key, parameter(first, p.key)), text(a, p.key),
                 parameter_text(p.key, parameter(second, p.key)), text(b, p.key),
                 parameter_text(p.key, p.value), deviation_text(p.deviation)});
  std::cout << table.text();
  if (!origin)
    std::cout << "taken as independent: if both were calibrated from one profile, name that with "
                 "--origin, or it counts twice\n";
  std::cerr << "wrote " << out << "\n";
  return 0;
}

// Exit code 1: something measured lies beyond all stated errors, or a number is implausible.
int check(const Arguments& args, const std::vector<std::string>& names) {
  const GivenEvidence given = read_given_evidence(args, {"", args.text("stack")});
  if (!given.runs.empty())
    throw InputError(given.runs.front(), "", "is a run of polyphony, or its traces",
                     "polyphony compare compares it with a --profile");
  const HardwareProfile profile = named(names.at(0), args.text("stack"));
  ProfileCheck result{{}, implausible(profile)};
  const std::vector<std::string>& faults = result.implausible;
  bool outside = false;
  Table table({"evidence", "predicted", "90 % interval", "measured", "error", ""});
  std::string memory;
  for (const StepEvidence& one : given.steps) {
    if (one.scenario.cluster.device.name != profile.device.name)
      throw InputError(one.source, "",
                       "is of " + one.scenario.cluster.device.name + ", " + profile.name + " of " +
                           profile.device.name,
                       "name the profile of that device");
    const Prediction prediction = quick_step(one.scenario, profile);
    const Belief belief = make_belief(
        prediction.step(),
        step_effects(prediction.program, prediction.compiled, one.scenario.cluster, profile),
        profile);
    const SecondsInterval bounds = interval(belief), all = interval(belief, 0.999);
    if (one.memory || one.reserved)
      memory += one.source + ": memory " + bytes_text(one.memory ? *one.memory : *one.reserved) +
                (one.memory ? "" : " reserved") + ", predicted " +
                bytes_text(most_memory(prediction)) + " allocated\n";
    if (!one.step) continue;
    const bool inside = *one.step >= bounds.low && *one.step <= bounds.high,
               beyond = *one.step < all.low || *one.step > all.high;
    outside = outside || beyond;
    table.add({one.source, seconds_text(belief.step),
               seconds_text(bounds.low) + " to " + seconds_text(bounds.high),
               seconds_text(*one.step), signed_percent_text(belief.step / *one.step - 1),
               inside ? "inside" : (beyond ? "FAR OUTSIDE" : "outside")});
    result.steps.push_back(
        {one.source, belief.step, bounds.low, bounds.high, *one.step, inside, beyond});
  }
  if (args.json()) {
    std::cout << to_json(result).dump(2) << "\n";
  } else {
    std::cout << describe(profile) << "\n";
    if (!result.steps.empty()) std::cout << table.text();
    std::cout << memory;
    for (const std::string& line : faults) std::cout << "implausible: " << line << "\n";
    if (faults.empty()) std::cout << "every number is near those of shipped profiles\n";
  }
  return outside || !faults.empty() ? 1 : 0;
}

struct Verb {
  const char* name;
  const char* summary;
  std::size_t profiles;
  int (*run)(const Arguments&, const std::vector<std::string>&);
  const char* example;
};
constexpr Verb kVerbs[] = {
    {"show", "Prints a profile's parameters, the uncertainty of each, and where they come from.", 1,
     show,
     "  polyphony profile show H100 --stack megatron-bridge\n  polyphony profile show ours.json"},
    {"diff", "Prints what differs between two profiles, and by how many standard deviations.", 2,
     diff, "  polyphony profile diff h100-roofline ours.json"},
    {"merge",
     "Merges two profiles of the same device and stack: parameters of both are weighed by their "
     "uncertainty (covariance), parameters of one are taken from it.",
     2, merge,
     "  polyphony profile merge may.json june.json --origin h100-roofline --out ours.json"},
    {"check",
     "Compares a profile's predictions with measurements, and its numbers with plausible ones. "
     "Exit "
     "code 1: a measurement is further off than the stated errors explain, or a number is "
     "implausible.",
     1, check,
     "  polyphony profile check ours.json slurm-124.out --scenario long.json\n  polyphony profile "
     "check ours.json --scenario long.json --step-time 41.5s"}};

}  // namespace

bool is_profile_verb(const char* word) {
  for (const Verb& verb : kVerbs)
    if (std::string(word) == verb.name) return true;
  return false;
}

int profile_verb(int argc, char** argv) {
  const Verb* verb = kVerbs;
  while (std::string(argv[1]) != verb->name) ++verb;
  const bool checks = verb->run == check;
  Arguments args(std::string("profile ") + verb->name, verb->summary,
                 verb->profiles == 2 ? "PROFILE PROFILE"
                 : checks            ? "PROFILE [EVIDENCE...]"
                                     : "PROFILE",
                 verb->example);
  args.add()("stack", "shipped software stack to combine a shipped profile with",
             cxxopts::value<std::string>()->default_value(""));
  if (!checks)
    args.add()("profiles", "shipped profiles, devices or files",
               cxxopts::value<std::vector<std::string>>());
  if (checks) {
    args.add()("profile", "a shipped profile, a device or a file", cxxopts::value<std::string>())(
        "runs", "logs and evidence files (polyphony calibrate --help)",
        cxxopts::value<std::vector<std::string>>())("scenario", "what a log or --step-time is of",
                                                    cxxopts::value<std::string>());
    add_evidence_options(args);
  }
  if (verb->run == merge)
    args.add()("out", "file for the merged profile", cxxopts::value<std::string>())(
        "origin", "profile that both were calibrated from, which counts once",
        cxxopts::value<std::string>())("name", "of the merged profile",
                                       cxxopts::value<std::string>()->default_value("merged"));
  args.positional(checks ? std::vector<std::string>{"profile", "runs"}
                         : std::vector<std::string>{"profiles"});
  if (args.parse(argc - 1, argv + 1)) return 0;
  std::vector<std::string> names;
  if (checks) {
    if (args.has("profile")) names.push_back(args.text("profile"));
  } else if (args.has("profiles")) {
    names = args.texts("profiles");
  }
  if (names.size() != verb->profiles)
    throw InputError(std::string("polyphony profile ") + verb->name, "",
                     "needs " + std::to_string(verb->profiles) + " profile" +
                         (verb->profiles == 1 ? "" : "s") + ", has " + std::to_string(names.size()),
                     std::string("polyphony profile ") + verb->name + " --help shows an example");
  return verb->run(args, names);
}

}  // namespace polyphony::sim
