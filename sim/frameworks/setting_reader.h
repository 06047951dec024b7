// Looks settings up by their key, and writes the report of what became of each.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/frameworks/report.h"
#include "sim/frameworks/settings.h"

namespace polyphony::sim {

// What is known about settings that no scenario has. A pattern may begin or end with "*".
struct KnownSetting {
  enum class Is { ignored, not_modeled } is;
  const char* patterns;  // separated by blanks
  const char* why;
  const char* usual = "";  // values that say nothing: defaults, separated by blanks
};
inline constexpr auto kIgnored = KnownSetting::Is::ignored;
inline constexpr auto kNotModeled = KnownSetting::Is::not_modeled;

class SettingReader {
 public:
  SettingReader(std::vector<Setting> settings, ImportReport& report, bool printed);

  const Setting* find(const std::string& key) const;  // null: absent, or "none"
  bool is_none(const std::string& key) const;         // it is stated as "none"
  bool has(const std::string& key) const { return find(key) != nullptr; }

  // Return the value, and note that it became `what`. Throw InputError at the setting's place if it
  // is of another type.
  std::optional<std::int64_t> integer(const std::string& key, const std::string& what);
  // The same for a number of things: at least 1, at most a thousand million.
  std::optional<std::int64_t> count(const std::string& key, const std::string& what);
  std::optional<double> number(const std::string& key, const std::string& what);
  bool flag(const std::string& key, bool otherwise, const std::string& what);
  std::string text(const std::string& key, const std::string& what);

  void used(const std::string& key, const std::string& what);
  void approximated(const std::string& key, const std::string& what);
  void not_modeled(const std::string& key, const std::string& what);
  void ignored(const std::string& key, const std::string& why);
  // The same for all that match a pattern and were not read.
  void ignored_all(const std::string& pattern, const std::string& why);
  void contradiction(const std::string& key, const std::string& what);
  void assumed(const std::string& what);
  [[noreturn]] void refuse(const std::string& key, const std::string& what,
                           const std::string& hint) const;

  // Sorts every setting that nothing has read yet: by the tables, else as not understood.
  void finish(const std::vector<std::vector<KnownSetting>>& tables);

 private:
  // "did you mean ...?", or nothing.
  std::string nearest(const std::string& key) const;
  void note(std::vector<ImportReport::Line>& lines, const std::string& key,
            const std::string& text);

  std::vector<Setting> settings_;
  ImportReport& report_;
  const bool printed_;
  std::set<std::string> read_;
  mutable std::set<std::string> asked_;  // keys that mean something, for suggestions
};

// Returns whether a value switches something off: "none", "false", "0", "".
bool is_off(const std::string& value);

}  // namespace polyphony::sim
