// The fields of a module that a scenario file may contain, one table row each.
//
// A row defines the key in the scenario file, its schema, its reader, its place in the resolved
// scenario and its part in the Program's hash. To add a field, add a member to Module and a row to
// module_fields.cpp; a member without a row does not compile.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "shared/model/model.h"
#include "shared/text/strict_json.h"

namespace polyphony {

struct ModuleField {
  using Member = std::variant<int Module::*, bool Module::*, double Module::*,
                              std::vector<int> Module::*, std::vector<Mixer> Module::*,
                              Norm Module::*, Mask Module::*, Activation Module::*,
                              RouterScores Module::*, Gelu Module::*, RopeScaling Module::*>;
  const char* key;
  Member member;
  std::int64_t least, most;  // inclusive range of a number
  std::uint8_t kinds;        // the kinds of module that have the field: one bit per ModuleKind
  const char* about;         // description in the schema
  // Returns true if the module must have the field (null: never required).
  bool (*needed)(const Module&) = nullptr;
  // Returns true if the resolved scenario contains the field (null: always).
  bool (*written)(const Module&) = nullptr;

  bool is_of(ModuleKind kind) const { return (kinds >> static_cast<int>(kind) & 1) != 0; }
  Form form() const;
  // Reads the key of `value` into `module`; leaves the module unchanged if the key is absent.
  void read(const JsonValue& value, Module& module) const;
};
// Returns all rows, in the order in which the schema lists them.
std::span<const ModuleField> module_fields();

}  // namespace polyphony
