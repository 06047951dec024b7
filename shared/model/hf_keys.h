// The known keys of Hugging Face config.json files and how each is treated: one table
// (hf_keys.cpp), by model type.
//   used     the reader builds the module from it (shared/model/hf_*.cpp), or rejects its value
//   ignored  does not affect a training step of the module
//   noted    affects numerical results but hardly speed: adds a note, unless its value is what this
//            program does anyway
//   refused  changes what is computed: an error, unless its value is what this program does anyway
//
// Keys that are not in the table are listed in a note. A null value counts as absent.
// Tested against the key lists of PyPI's `transformers` (tests/shared/model/hf_keys_test.cpp).
#pragma once

#include <string>
#include <vector>

#include "shared/model/model.h"
#include "shared/text/strict_json.h"

namespace polyphony {

enum class HfFate : std::uint8_t { used, ignored, noted, refused };

// A row of the table. `keys` and `types` are lists of words; a key may begin or end with *.
struct HfKeys {
  const char* keys;
  const char*
      types;  // "any"; "language", "vision", "audio": all types of that kind; or model types
  HfFate fate;
  const char* about;       // ignored: why; noted and refused: what this program does instead
  const char* plain = "";  // noted and refused: list of values that match what this program does
};
// Returns the first row with this key for the type, or null.
const HfKeys* find_hf_key(const std::string& type, ModuleKind kind, const std::string& key);

// Checks the keys of a configuration that is read as a module of this kind. Returns the notes;
// throws InputError if a key is refused.
std::vector<std::string> check_hf_keys(const JsonValue& config, const std::string& type,
                                       ModuleKind kind);
// Checks the keys of the composite configuration that the module's configuration is part of.
std::vector<std::string> check_hf_whole(const JsonValue& whole, ModuleKind kind);

}  // namespace polyphony
