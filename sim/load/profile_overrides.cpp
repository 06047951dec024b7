#include "sim/load/profile_overrides.h"

#include "shared/error.h"
#include "shared/hardware/hardware_json.h"

namespace polyphony::sim {

bool of_profile(const Override& override) { return override.path.front() == "profile"; }

HardwareProfile overridden(HardwareProfile profile, const std::vector<Override>& overrides) {
  for (const Override& override : overrides) {
    if (!of_profile(override)) continue;
    const std::string file = "--set " + override.text;
    const Override inner{
        override.text, {override.path.begin() + 1, override.path.end()}, override.value};
    if (inner.path.empty())
      throw InputError(file, "", "a profile is not one value",
                       "name a key of it, profile.gemm_efficiency=0.6, or give --profile FILE");
    const JsonValue written = JsonValue::parse(to_json(profile), file);
    const JsonValue changed =
        apply(written, {inner}, [&](const std::string& key) { return written.at(key); });
    profile = parse_profile(changed.dump(), file);
  }
  return profile;
}

}  // namespace polyphony::sim
