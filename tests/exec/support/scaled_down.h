// Scales a published language model down to test size: the kinds of attention of its blocks,
// routing, gates, norms, biases and tied weights are kept; widths and counts are those of
// tests/exec/support/tiny_model.h.
#pragma once

#include "shared/error.h"
#include "shared/model/presets.h"
#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

inline Module scaled_down(const std::string& preset) {
  const ModelPreset* const found = find_preset(preset);
  POLYPHONY_CHECK(found != nullptr, "no preset " << preset);
  const Module tiny = tiny_language();
  Module m = found->module;
  const auto shrink = [](int& size, int to) { size = size > 0 ? to : 0; };
  m.name = tiny.name;
  m.layers = 4;
  m.hidden = tiny.hidden;
  m.kv_heads = m.kv_heads == m.heads ? tiny.heads : tiny.kv_heads;
  m.heads = tiny.heads;
  m.head_dim = tiny.head_dim;
  m.vocab = tiny.vocab;
  shrink(m.ffn, tiny.ffn);
  shrink(m.key_value_rank, 10);
  shrink(m.query_rank, 12);
  shrink(m.rotary_dim, 4);
  shrink(m.value_dim, 5);
  shrink(m.experts, 8);
  shrink(m.experts_per_token, 2);
  shrink(m.expert_ffn, 8);
  shrink(m.shared_ffn, 4);
  shrink(m.dense_blocks, 1);
  shrink(m.expert_groups, 4);
  shrink(m.groups_per_token, 2);
  shrink(m.sliding_window, 4);
  if (m.local_rope_theta > 0) m.local_rope_theta = 50;
  if (m.experts > 0) m.balance_weight = 0.1;
  while (m.mixers.size() > 3) m.mixers.erase(m.mixers.begin());  // its last block is another one
  shrink(m.linear_key_heads, 4);
  shrink(m.linear_value_heads, 8);
  shrink(m.linear_head_dim, 6);
  return m;
}

}  // namespace polyphony::exec::testing
