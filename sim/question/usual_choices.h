// The choices among which a question is searched unless all are asked for: those that published
// runs make, and that are rarely far from the best. They keep a search to seconds.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace polyphony::sim {

// A model with one encoder or none, as far as the choices depend on it.
struct ChoiceOf {
  std::int64_t sequence = 0;    // tokens of a sample
  int nodes = 1, per_node = 1;  // accelerators
  std::string encoder;          // module name; empty: none, or several
  double encoder_share = 0;     // of a step's floating-point operations
};

// Adds the choices to the value of a scenario's key "search"; those that are there stay.
//   sequence parallelism wherever there is tensor parallelism (arXiv 2205.05198)
//   context parallelism of the language module while a rank keeps 4,096 tokens
//   microbatches of at most 32,768 tokens and 8 samples, in powers of two
//   ZeRO-1 or ZeRO-3
//   ranks of a non-colocated encoder: the two powers of two (of nodes, if there are several) around
//   its share of the floating-point operations
void add_usual_choices(const ChoiceOf& of, nlohmann::ordered_json& search);

// Returns what they leave out, for the person who asks.
std::string usual_choices_text();

}  // namespace polyphony::sim
