// Device files of a user.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "shared/hardware/shipped_files.h"

namespace polyphony::test {

// Returns the file of a shipped device as a user copies it: with another name, no named nodes.
inline std::string copied_device(const std::string& device, const std::string& name) {
  for (const ShippedFile& file : device_files()) {
    std::string text = file.text;
    const std::string key = "\"name\": \"" + device + "\"";
    const auto at = text.find(key);
    if (at == std::string::npos) continue;
    text.replace(at, key.size(), "\"name\": \"" + name + "\"");
    if (const auto nodes = text.find("  \"nodes\": {"); nodes != std::string::npos)
      text.erase(nodes, text.find('\n', nodes) + 1 - nodes);
    return text;
  }
  FAIL(device);
  return "";
}

}  // namespace polyphony::test
