// The fields of a module that a person may write: one row makes the key of the scenario, its schema,
// the reader, the resolved form and the program's hash. A new field is a member of Module and a row
// here; a member without a row does not compile (module_fields.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "shared/model/model.h"
#include "shared/text/strict_json.h"

namespace polyphony {

struct ModuleField {
  using Member =
      std::variant<int Module::*, bool Module::*, double Module::*, std::vector<int> Module::*,
                   std::vector<Mixer> Module::*, Norm Module::*, Mask Module::*,
                   Activation Module::*, RouterScores Module::*>;
  const char* key;
  Member member;
  std::int64_t least, most;  // numbers, inclusive
  std::uint8_t kinds;        // bits by ModuleKind
  const char* about;
  // When a module must have it, and when the resolved form says it; null: never, always.
  bool (*needed)(const Module&) = nullptr;
  bool (*written)(const Module&) = nullptr;

  bool is_of(ModuleKind kind) const { return (kinds >> static_cast<int>(kind) & 1) != 0; }
  Form form() const;
  // Reads the key where it is there.
  void read(const JsonValue& value, Module& module) const;
};
std::span<const ModuleField> module_fields();

}  // namespace polyphony
