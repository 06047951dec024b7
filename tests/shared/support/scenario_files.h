// Reads the shipped scenarios in tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "shared/scenario_io/scenario_json.h"

namespace polyphony::test {

inline std::string file_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError(path, "", "no such file", "check the path");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> scenario_paths() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

inline Scenario scenario_at(const std::string& path) {
  return read_scenario(file_text(path), path, file_text);
}

// Returns the error line of reading `text`; empty if it is accepted.
inline std::string refusal(const std::string& text, const LoadText& load = file_text) {
  try {
    read_scenario(text, "s.json", load);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace polyphony::test
