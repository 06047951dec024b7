// The version of this build.
#pragma once

#include <string>

namespace polyphony {

struct BuildInfo {
  std::string version;   // semantic version, such as "0.3.0"
  std::string commit;    // abbreviated hash, with "+" if files were changed; "unknown" without git
  std::string compiler;  // such as "GNU 12.2.0"
  std::string options;   // build type and halves, such as "Release, sim, exec, NCCL"
};

// Returns what the build system recorded (scripts/cmake/version.cmake).
BuildInfo build_info();

}  // namespace polyphony
