// What the frameworks behind the shipped software stacks can run, for questions that name a stack:
// a search must not answer with a layout that they do not have.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace polyphony::sim {

struct StackLimits {
  const char* stack;
  std::vector<const char*> placements, schedules, shards;
  bool tensor_parallel, context_parallel, pipelines;
  const char* source;
};

// Returns nothing for a stack without limits: this project's own.
const StackLimits* find_limits(const std::string& stack);
// Adds the limits to the value of a scenario's key "search".
void apply_limits(const StackLimits& limits, const std::vector<std::string>& modules,
                  nlohmann::ordered_json& search);

}  // namespace polyphony::sim
