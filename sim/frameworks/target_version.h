// A framework to write for, in a version of it, and which of its settings came with which version:
// `--for torchtitan@0.2.2`.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "shared/enum_names.h"

namespace polyphony::sim {

enum class Target : std::uint8_t { megatron_lm, megatron_bridge, torchtitan, ms_swift };
constexpr auto names(Target) {
  return names_of<Target>("megatron-lm", "megatron-bridge", "torchtitan", "ms-swift");
}

// Of Megatron-LM: the version of its core (tag core_v0.13.0).
struct FrameworkVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const FrameworkVersion&) const = default;
};
std::string version_text(FrameworkVersion version);  // "0.13.0"

struct TargetVersion {
  // Not explicit: a target alone means the newest version that is known.
  TargetVersion(Target of, std::optional<FrameworkVersion> in = {}) : target(of), version(in) {}

  Target target;
  std::optional<FrameworkVersion> version;

  bool before(FrameworkVersion since) const { return version && *version < since; }
  bool operator==(Target other) const { return target == other; }
};

// Returns "megatron-lm", or with a version "megatron-lm@0.13.0", as parse_target() reads it.
std::string target_text(const TargetVersion& target);

// Returns the target of "torchtitan", "torchtitan@0.2.2", "megatron-lm@core_v0.13.0". Throws
// InputError that names `option`: no such framework (lists them), a version that is none, or one
// older than the oldest that emit() writes for.
TargetVersion parse_target(const std::string& word, const std::string& option = "--for");

// The oldest version of a framework that emit() writes for, and the newest that was looked at.
struct KnownVersions {
  FrameworkVersion oldest, newest;
};
KnownVersions known_versions(Target target);

// Returns a sentence if the version is newer than the newest that was looked at; empty otherwise.
std::string remark_on_version(const TargetVersion& target);

// What an older version does with a setting that it does not have.
enum class WithoutSetting : std::uint8_t {
  refused,   // it cannot do what the setting says
  omitted,   // it does the same without being told
  rewritten  // it has the same under another name
};
constexpr auto names(WithoutSetting) {
  return names_of<WithoutSetting>("refused", "omitted", "rewritten");
}

struct SettingSince {
  Target target;
  FrameworkVersion since;
  const char* setting;  // key of Emitted::arguments
  const char* value;    // as JSON; nullptr: any value
  WithoutSetting without;
  const char* what;    // in words
  const char* source;  // file of the framework that has it, and how versions before do without
};
std::span<const SettingSince> settings_since();

}  // namespace polyphony::sim
