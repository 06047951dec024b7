// Every key of a Hugging Face config.json, and what becomes of it: one table (hf_keys.cpp), by model
// type.
//   used     the reader makes the module of it (shared/model/hf_*.cpp), or refuses its value
//   ignored  a training step of the module does the same whatever it says
//   noted    changes the numbers and hardly the speed: a note, unless it says what is done here anyway
//   refused  changes what is computed: an error, unless it says what is done here anyway
// A key that the table does not have is noted by name. null says nothing.
// Held against the key lists of PyPI's `transformers` (tests/shared/model/hf_keys_test.cpp).
#pragma once

#include <string>
#include <vector>

#include "shared/model/model.h"
#include "shared/text/strict_json.h"

namespace polyphony {

enum class HfFate : std::uint8_t { used, ignored, noted, refused };

// Keys of configurations of these model types, both lists of words; a key may begin or end in *.
struct HfKeys {
  const char* keys;
  const char*
      types;  // "any"; "language", "vision", "audio": all that are read as such; or model types
  HfFate fate;
  const char* about;       // ignored: why; noted and refused: what is done instead
  const char* plain = "";  // noted and refused: values that say what is done here, words
};
// The first row that names the key for the type; null: none does.
const HfKeys* find_hf_key(const std::string& type, ModuleKind kind, const std::string& key);

// Of a configuration read as a module of the kind: throws InputError for what is refused, returns the
// notes.
std::vector<std::string> check_hf_keys(const JsonValue& config, const std::string& type,
                                       ModuleKind kind);
// Of the composite configuration that the module's is part of.
std::vector<std::string> check_hf_whole(const JsonValue& whole, ModuleKind kind);

}  // namespace polyphony
