// Other routing, gates and biases of a module with experts.
#pragma once

#include "shared/model/model.h"

namespace polyphony::exec::testing {

// DeepSeek-V3's routing; GPT-OSS' biases and gates.
inline void route_by_sigmoids(Module& m) {
  m.router_scores = RouterScores::sigmoid;
  m.routed_scale = 2.5;
  m.expert_groups = m.experts / 2;
  m.groups_per_token = m.experts / 4;
}
inline void bias_experts(Module& m) {
  m.expert_bias = true;
  m.activation = Activation::clamped;
}

}  // namespace polyphony::exec::testing
