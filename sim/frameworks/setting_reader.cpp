#include "sim/frameworks/setting_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <unordered_map>

#include "shared/error.h"
#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "sim/text/one_line.h"

namespace polyphony::sim {
namespace {

bool matches(const std::string& pattern, const std::string& key) {
  const bool open = pattern.starts_with("*"), more = pattern.ends_with("*");
  if (open && more && pattern.size() > 2)
    return key.find(pattern.substr(1, pattern.size() - 2)) != std::string::npos;
  if (more) return key.starts_with(pattern.substr(0, pattern.size() - 1));
  if (open) return key.ends_with(pattern.substr(1));
  return key == pattern;
}

bool is_usual(const KnownSetting& known, const std::string& value) {
  std::istringstream values(known.usual);
  for (std::string usual; values >> usual;)
    if (usual == value) return true;
  return false;
}

const KnownSetting* find_known(const std::vector<std::vector<KnownSetting>>& tables,
                               const std::string& key) {
  for (const std::vector<KnownSetting>& table : tables)
    for (const KnownSetting& known : table) {
      std::istringstream patterns(known.patterns);
      for (std::string pattern; patterns >> pattern;)
        if (matches(pattern, key)) return &known;
    }
  return nullptr;
}

}  // namespace

bool is_off(const std::string& value) {
  return value.empty() || value == "none" || value == "false" || value == "0" || value == "0.0" ||
         value == "{}";
}

SettingReader::SettingReader(std::vector<Setting> settings, ImportReport& report, bool printed)
    : settings_(std::move(settings)), report_(report), printed_(printed) {
  // Of a key, the last setting counts; an earlier one with another value is told.
  std::vector<Setting> last;
  std::unordered_map<std::string, std::size_t> at;
  for (const Setting& setting : settings_) {
    const auto [found, is_new] = at.emplace(setting.key, last.size());
    if (is_new) {
      last.push_back(setting);
      continue;
    }
    Setting& earlier = last[found->second];
    if (earlier.value != setting.value)
      report_.ignored.push_back(
          {earlier.written, earlier.place,
           "stated again: " + setting.written + " (" + setting.place + ") counts"});
    earlier = setting;
  }
  settings_ = std::move(last);
}

bool SettingReader::is_none(const std::string& key) const {
  return std::any_of(settings_.begin(), settings_.end(), [&](const Setting& setting) {
    return setting.key == key && setting.value == "none";
  });
}

const Setting* SettingReader::find(const std::string& key) const {
  asked_.insert(key);
  for (const Setting& setting : settings_)
    if (setting.key == key && setting.value != "none") return &setting;
  return nullptr;
}

void SettingReader::note(std::vector<ImportReport::Line>& lines, const std::string& key,
                         const std::string& text) {
  read_.insert(key);
  if (const Setting* setting = find(key)) lines.push_back({setting->written, setting->place, text});
}
void SettingReader::used(const std::string& key, const std::string& what) {
  if (read_.contains(key)) return;
  if (const Setting* setting = find(key); setting && setting->written.empty())
    read_.insert(key);  // it follows from defaults alone
  else
    note(report_.used, key, what);
}
void SettingReader::approximated(const std::string& key, const std::string& what) {
  note(report_.approximated, key, what);
}
void SettingReader::not_modeled(const std::string& key, const std::string& what) {
  note(report_.not_modeled, key, what);
}
void SettingReader::ignored(const std::string& key, const std::string& why) {
  note(report_.ignored, key, why);
}
void SettingReader::ignored_all(const std::string& pattern, const std::string& why) {
  for (const Setting& setting : settings_)
    if (!read_.contains(setting.key) && matches(pattern, setting.key)) ignored(setting.key, why);
}
void SettingReader::contradiction(const std::string& key, const std::string& what) {
  note(report_.contradictions, key, what);
}
void SettingReader::assumed(const std::string& what) { report_.assumed.push_back({"", "", what}); }

void SettingReader::refuse(const std::string& key, const std::string& what,
                           const std::string& hint) const {
  const Setting* setting = find(key);
  throw InputError(setting ? setting->place : key, "",
                   one_line(setting ? setting->written : key) + ": " + what, hint);
}

std::optional<double> SettingReader::number(const std::string& key, const std::string& what) {
  const Setting* setting = find(key);
  if (!setting) return std::nullopt;
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(setting->value, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (const std::size_t dollar = setting->value.find('$'); dollar != std::string::npos) {
    const auto is_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    std::size_t begin = dollar + 1;
    while (begin < setting->value.size() && !is_name(setting->value[begin])) ++begin;
    std::size_t last = begin;
    while (last < setting->value.size() && is_name(setting->value[last])) ++last;
    const std::string variable = setting->value.substr(begin, last - begin);
    refuse(key, "is not known, because the script does not set $" + variable,
           "state it: --env " + (variable.empty() ? std::string("NAME") : variable) + "=VALUE");
  }
  if (end == 0 || end != setting->value.size() || !std::isfinite(value))
    refuse(key, "must be a number", "correct the file");
  used(key, what);
  return value;
}

std::optional<std::int64_t> SettingReader::integer(const std::string& key,
                                                   const std::string& what) {
  const std::optional<double> value = number(key, what);
  if (!value) return std::nullopt;
  constexpr double kMost = 1e15;
  if (*value != std::floor(*value) || std::abs(*value) > kMost)
    refuse(key, "must be a whole number", "correct the file");
  return static_cast<std::int64_t>(*value);
}

std::optional<std::int64_t> SettingReader::count(const std::string& key, const std::string& what) {
  const std::optional<std::int64_t> value = integer(key, what);
  constexpr std::int64_t kMost = 1'000'000'000;
  if (value && (*value < 1 || *value > kMost))
    refuse(key, "must be at least 1, and at most " + count_text(kMost), "correct the file");
  return value;
}

bool SettingReader::flag(const std::string& key, bool otherwise, const std::string& what) {
  const Setting* setting = find(key);
  if (!setting) return otherwise;
  const bool value = !is_off(setting->value);
  if (value || !printed_)
    used(key, what);
  else
    read_.insert(key);
  return value;
}

std::string SettingReader::text(const std::string& key, const std::string& what) {
  const Setting* setting = find(key);
  if (!setting) return "";
  used(key, what);
  return setting->value;
}

std::string SettingReader::nearest(const std::string& key) const {
  const std::string hint = suggest(key, {asked_.begin(), asked_.end()});
  return hint.starts_with("did you mean") ? hint : "";
}

void SettingReader::finish(const std::vector<std::vector<KnownSetting>>& tables) {
  for (const Setting& setting : settings_) {
    if (read_.contains(setting.key)) continue;
    const KnownSetting* known = find_known(tables, setting.key);
    if (known && is_usual(*known, setting.value)) {
      ++report_.off;
      continue;
    }
    if (setting.value == "none" ||
        (is_off(setting.value) &&
         (printed_ || (known && known->is == KnownSetting::Is::not_modeled)))) {
      ++report_.off;
      continue;
    }
    if (!known) {
      report_.unknown.push_back({setting.written, setting.place, nearest(setting.key)});
    } else if (known->is == KnownSetting::Is::ignored) {
      report_.ignored.push_back({setting.written, setting.place, known->why});
    } else {
      report_.not_modeled.push_back({setting.written, setting.place, known->why});
    }
  }
}

}  // namespace polyphony::sim
