// What is said of a module's blocks: experts, and attention that is latent or unlike from block to block
// (shared/validate/validate.h).
#include <algorithm>
#include <cmath>

#include "shared/model/limits.h"
#include "shared/validate/refusal.h"
#include "shared/validate/validate.h"

namespace polyphony {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

// The groups that a token chooses before its experts.
void check_groups(const Refusal& refuse, const Module& m, const std::string& where) {
  if (m.expert_groups == 0) {
    if (m.groups_per_token != 0)
      refuse(where + "/groups_per_token", "there are no groups of experts",
             "remove the key, or say how many \"expert_groups\" there are");
    return;
  }
  if (m.expert_groups < 0 || m.experts % m.expert_groups != 0)
    refuse(where + "/expert_groups",
           number(m.expert_groups) + " groups do not divide " + number(m.experts) + " experts",
           "DeepSeek-V3 has 8 groups of 32");
  if (m.groups_per_token < 1 || m.groups_per_token > m.expert_groups ||
      m.experts_per_token > m.experts / m.expert_groups * m.groups_per_token)
    refuse(where + "/groups_per_token",
           "the experts of " + number(m.groups_per_token) + " of " + number(m.expert_groups) +
               " groups do not make " + number(m.experts_per_token) + " choices",
           "DeepSeek-V3 chooses 8 experts in 4 groups of 8");
}

}  // namespace

void check_experts(const Refusal& refuse, const Module& m, const std::string& where) {
  if (m.experts == 0) {
    const auto alone = [&](const char* key, bool there) {
      if (there)
        refuse(where + "/" + key, "there are no experts",
               "remove the key, or say how many \"experts\" a layer has");
    };
    alone("experts_per_token", m.experts_per_token != 0);
    alone("expert_ffn", m.expert_ffn != 0);
    alone("shared_ffn", m.shared_ffn != 0);
    alone("balance_weight", m.balance_weight != 0);
    alone("dense_blocks", m.dense_blocks != 0);
    alone("router_scores", m.router_scores != RouterScores::softmax);
    alone("routed_scale", m.routed_scale != 1);
    alone("expert_groups", m.expert_groups != 0);
    alone("groups_per_token", m.groups_per_token != 0);
    alone("expert_bias", m.expert_bias);
    return;
  }
  if (m.kind != ModuleKind::language)
    refuse(where + "/experts", std::string("a ") + name(m.kind) + " module has no experts",
           "only language modules have them");
  check_sizes(refuse, where,
              {{"experts", m.experts, 1 << 16},
               {"experts_per_token", m.experts_per_token, m.experts},
               {"expert_ffn", m.expert_ffn, kMostWidth}});
  if (m.shared_ffn < 0 || m.shared_ffn > kMostWidth)
    refuse(where + "/shared_ffn", number(m.shared_ffn) + " is out of range",
           "write a whole number from 0 to " + number(kMostWidth));
  if (!(m.balance_weight >= 0) || std::isinf(m.balance_weight))
    refuse(where + "/balance_weight", "it must be 0 or more", "0.001 to 0.01 is usual");
  if (m.dense_blocks < 0 || m.dense_blocks >= m.layers)
    refuse(where + "/dense_blocks",
           number(m.dense_blocks) + " of " + number(m.layers) + " blocks leave none with experts",
           "write fewer, or remove \"experts\"");
  if (!(m.routed_scale > 0) || std::isinf(m.routed_scale))
    refuse(where + "/routed_scale", "it must be more than 0", "DeepSeek-V3 has 2.5");
  check_groups(refuse, m, where);
  if (m.ffn != 0 && m.dense_blocks == 0)
    refuse(where + "/ffn", "every block holds experts, none a dense feed-forward layer",
           "leave it out, or remove \"experts\"");
}

namespace {

bool has_mixer(const Module& m, Mixer mixer) {
  return std::find(m.mixers.begin(), m.mixers.end(), mixer) != m.mixers.end();
}

}  // namespace

void check_mixers(const Refusal& refuse, const Module& m, const std::string& where) {
  const auto needs = [&](const char* key, bool there, const std::string& what) {
    if (there) refuse(where + "/" + key, what, "remove the key");
  };
  const bool latent = m.key_value_rank > 0, window = has_mixer(m, Mixer::window),
             linear = has_mixer(m, Mixer::linear);
  needs("query_rank", !latent && m.query_rank != 0, "there is no latent attention");
  needs("value_dim", !latent && m.value_dim != 0, "there is no latent attention");
  needs("attention_sinks", latent && m.attention_sinks, "latent attention has no sinks");
  needs("attention_gate", latent && m.attention_gate, "latent attention has no gate");
  needs("qk_norm", latent && m.qk_norm, "latent attention norms its latents instead");
  if (latent && (m.rotary_dim < 2 || m.rotary_dim % 2 != 0))
    refuse(where + "/rotary_dim", "latent attention rotates an even number of them",
           "DeepSeek-V3 has 64");
  if (latent && m.kv_heads != m.heads)
    refuse(where + "/kv_heads", "latent attention makes keys and values for all heads",
           "leave the key out");
  if (!latent && (m.rotary_dim > m.head_dim || m.rotary_dim % 2 != 0))
    refuse(where + "/rotary_dim",
           "heads of " + number(m.head_dim) + " cannot turn " + number(m.rotary_dim) + " numbers",
           "write an even number of at most head_dim");
  needs("sliding_window", !window && m.sliding_window != 0, "no block of \"mixers\" has a window");
  needs("local_rope_theta", !window && m.local_rope_theta != 0,
        "no block of \"mixers\" has a window");
  if (window) check_sizes(refuse, where, {{"sliding_window", m.sliding_window, kMostTokens}});
  if (window && m.local_rope_theta != 0 && !(m.local_rope_theta >= 1))
    refuse(where + "/local_rope_theta", "it must be at least 1", "10000 is usual");
  const bool convolution = has_mixer(m, Mixer::convolution);
  needs("short_conv", !convolution && m.short_conv != 0, "no block of \"mixers\" is a convolution");
  if (convolution) check_sizes(refuse, where, {{"short_conv", m.short_conv, 64}});
  needs("linear_key_heads", !linear && m.linear_key_heads != 0, "no block of \"mixers\" is linear");
  if (m.mask != Mask::causal && (linear || convolution))
    refuse(where + "/mask",
           "a running state and a convolution see all rows before, whatever the mask",
           "leave the key out, or remove \"linear\" and \"convolution\" from \"mixers\"");
  if (!linear) return;
  check_sizes(refuse, where,
              {{"linear_key_heads", m.linear_key_heads, kMostWidth},
               {"linear_value_heads", m.linear_value_heads, kMostWidth},
               {"linear_head_dim", m.linear_head_dim, kMostWidth},
               {"linear_conv", m.linear_conv, 64}});
  if (m.linear_value_heads % m.linear_key_heads != 0)
    refuse(where + "/linear_value_heads",
           number(m.linear_value_heads) + " value heads are no multiple of " +
               number(m.linear_key_heads) + " key heads",
           "each key head serves an equal group of them");
}

}  // namespace polyphony
