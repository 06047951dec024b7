// A diffusion module with round dimensions, for closed forms.
#pragma once

#include "shared/model/model.h"

namespace polyphony::examples {

// Blocks of H 8, one head of 8, F 12, R 3, patches of 2·1² features, conditioning rows of width 5.
inline Module small_diffusion() {
  Module m;
  m.name = "diffusion";
  m.kind = ModuleKind::diffusion;
  m.layers = 2;
  m.hidden = m.head_dim = 8;
  m.heads = m.kv_heads = 1;
  m.ffn = 12;
  m.attention_bias = true;
  m.patch = 1;
  m.latent_channels = 2;
  m.latent_tokens = 16;
  m.modulation = 3;
  m.condition = 5;
  return m;
}

}  // namespace polyphony::examples
