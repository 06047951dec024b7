// Deliberately changed checkpoint manifests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "shared/fnv.h"

namespace polyphony::test {

// Returns the manifest with the checksum of its changed content; text that is not a JSON object
// stays as it is.
inline std::string resealed_manifest(const std::string& text) {
  nlohmann::json manifest = nlohmann::json::parse(text, nullptr, false);
  if (!manifest.is_object()) return text;
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  manifest.erase("checksum");
  Fnv checksum;
  checksum.add(manifest.dump(-1, ' ', false, kReplace));
  manifest["checksum"] = checksum.digits();
  return manifest.dump(1, ' ', false, kReplace);
}

}  // namespace polyphony::test
