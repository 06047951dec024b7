// The scenario file's form: every key, what it may hold and what it means. The reader
// (shared/scenario/scenario_json.h) and the JSON Schema (shared/scenario/schema_json.h) both follow
// these tables.
#pragma once

#include <string>
#include <vector>

#include "shared/json_form.h"
#include "shared/model/model.h"

namespace polyphony {

const ObjectForm& scenario_form();
const ObjectForm& model_form();    // its key "model"
const ObjectForm& cluster_form();  // its key "cluster"

// Keys of /model/<name> that a module of this kind may have.
std::vector<std::string> module_keys(ModuleKind kind);

// Words that stand beside module names in layout and search, so that no module may be called so.
const std::vector<std::string>& reserved_module_names();

// Most of the sizes that a scenario may name; far above anything built, low enough that products
// fit 64 bits and lists fit memory.
inline constexpr std::int64_t kMostLayers = 2000;
inline constexpr std::int64_t kMostWidth = 1 << 20;
inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostSamples = 1 << 20;
inline constexpr std::int64_t kMostTokens = 1 << 26;

}  // namespace polyphony
