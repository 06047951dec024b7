#include "sim/commands/profile_verbs.h"

#include <iostream>

#include "shared/hardware/device_file_json.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/roofline.h"
#include "shared/hardware/shipped_certainty.h"
#include "sim/cli/command.h"
#include "sim/cli/evidence_files.h"
#include "sim/cli/measurements.h"
#include "sim/console/console.h"
#include "sim/evidence/evidence_json.h"
#include "sim/evidence/profile_tables.h"
#include "sim/shown_runs/profile_tables_text.h"
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

int show(const Arguments& args, const std::vector<std::string>& names) {
  const HardwareProfile profile = named(names.at(0), args.text("stack"));
  if (args.json())
    std::cout << shown_json(profile).dump(2) << "\n";
  else
    std::cout << shown_text(profile);
  return 0;
}

int diff(const Arguments& args, const std::vector<std::string>& names) {
  const HardwareProfile first = named(names.at(0), args.text("stack")),
                        second = named(names.at(1), args.text("stack"));
  if (args.json())
    std::cout << difference_json(first, second).dump(2) << "\n";
  else
    std::cout << difference_text(first, second);
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
  std::cout << merged_text(first, second, merged);
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
  const ProfileCheck result = check_profile(profile, given.steps);
  if (args.json())
    std::cout << to_json(result).dump(2) << "\n";
  else
    std::cout << check_text(profile, result);
  return result.passed() ? 0 : 1;
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
             cxxopts::value<std::string>());
  if (!checks)
    args.add()("profiles", "shipped profiles, devices or files",
               cxxopts::value<std::vector<std::string>>());
  if (checks) {
    args.add()("profile", "a shipped profile, a device or a file", cxxopts::value<std::string>())(
        "runs", "logs and evidence files (polyphony calibrate --help)",
        cxxopts::value<std::vector<std::string>>())("scenario", "what a log or --step-time is of",
                                                    cxxopts::value<std::string>());
    add_evidence_options(args);
    args.add_phase();
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
