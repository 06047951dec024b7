#include "shared/scenario_io/scenario_profile.h"

#include <optional>

#include "shared/hardware/device_file_json.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/roofline.h"
#include "shared/hardware/shipped_certainty.h"
#include "shared/hardware/software.h"
#include "shared/text/json_form.h"

namespace polyphony {
namespace {

// The profile that is named, and the device file that it was made from, if it was.
struct NamedProfile {
  HardwareProfile profile;
  std::optional<ShippedDevice> device;
};

std::string profile_text(const LoadText& load, const std::string& name) {
  try {
    return load(name);
  } catch (const InputError&) {
    if (is_profile_file(name)) throw;
    throw InputError(name, "", "is neither a shipped profile nor a file that can be read",
                     suggest(name, profile_names()));
  }
}

NamedProfile named_profile(const Scenario& scenario, const LoadText& load,
                           const std::string& name) {
  const std::string wanted = name.empty() ? scenario.cluster.profile : name;
  if (wanted.empty() || (wanted == scenario.cluster.profile && !is_profile_file(wanted))) {
    if (const auto shipped = shipped_profile(scenario.cluster)) return {*shipped, {}};
    throw InputError(scenario.file, "/cluster/profile",
                     "device \"" + scenario.cluster.device.name + "\" has no shipped profile",
                     "write the path of a profile that polyphony profile or calibrate made");
  }
  if (const HardwareProfile* shipped = find_profile(wanted)) return {*shipped, {}};
  const std::string text = profile_text(load, wanted);
  const auto device = own_device_in(text, wanted);
  if (!device) return {parse_profile(text, wanted), {}};
  HardwareProfile profile = roofline_profile(*device);
  if (wanted == scenario.cluster.profile) profile.device = scenario.cluster.device;
  return {profile, device};
}

// Sets the format of the GEMMs. CPUs (no faster in bf16 than in fp32) compute FP8 operands in fp32:
// their GEMMs keep the price of the precision of the training.
void take_fp8(const Scenario& scenario, const std::string& name, HardwareProfile& profile) {
  const Device& device = profile.device;
  if (device.fp8.value > 0) {
    profile.stack.matrix = NumberFormat::fp8;
  } else if (profile.collectives != CollectiveLibrary::gloo && device.bf16 > device.fp32) {
    throw InputError(name.empty() ? scenario.file : name,
                     name.empty() ? "/training/fp8" : "/device",
                     device.name + " has no peak rate in fp8",
                     "remove fp8 from the training, or add \"fp8\" to the device");
  }
}

}  // namespace

void take_layer_times(const Scenario& scenario, HardwareProfile& profile) {
  for (const auto& [module, entries] : scenario.layer_times) profile.layer_times[module] = entries;
}

HardwareProfile scenario_profile(const Scenario& scenario, const LoadText& load,
                                 const std::string& name, const std::string& stack) {
  const NamedProfile named = named_profile(scenario, load, name);
  HardwareProfile profile = named.profile;
  const std::string& source = name.empty() ? scenario.cluster.profile : name;
  if (!stack.empty() && find_stack(stack) == nullptr)
    throw InputError(Argument{"stack"}, "",
                     "no software stack \"" + stack + "\" ships with the program",
                     suggest(stack, stack_names()));
  const std::string& wanted = stack.empty() ? scenario.training.software : stack;
  if (const SoftwareStack* shipped = find_stack(wanted);
      shipped != nullptr && profile.stack.name != wanted)
    profile.stack = *shipped;
  if (named.device && named.device->fit) state_certainty(profile, *named.device->fit);
  if (!is_profile_file(source)) state_certainty(profile);
  take_layer_times(scenario, profile);
  const NumberFormat precision = scenario.training.precision;
  if (!(peak(profile.device, precision).value > 0))
    throw InputError(name.empty() ? scenario.cluster.profile : name, "/device",
                     profile.device.name + " has no peak rate in " + polyphony::name(precision) +
                         ", the precision of the training",
                     "add \"bf16\" to the device, or train in fp32");
  if (scenario.training.fp8 != Fp8Scaling::off) take_fp8(scenario, name, profile);
  return profile;
}

}  // namespace polyphony
