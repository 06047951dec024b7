// Checks of a module's blocks: experts, latent attention, and sequence mixers
// (shared/validate/validate.h).
#include <algorithm>
#include <cmath>

#include "shared/model/limits.h"
#include "shared/text/number_text.h"
#include "shared/validate/refusal.h"
#include "shared/validate/validate.h"

namespace polyphony {
namespace {

// Checks the expert groups, among which a token chooses first.
void check_groups(const Refusal& refuse, const Module& m, const std::string& where) {
  if (m.expert_groups == 0) {
    if (m.groups_per_token != 0)
      refuse(where + "/groups_per_token", "groups_per_token needs expert_groups",
             "remove the key, or write \"expert_groups\", the number of groups");
    return;
  }
  if (m.expert_groups < 0 || m.experts % m.expert_groups != 0)
    refuse(where + "/expert_groups",
           "expert_groups must be a divisor of the " + number(m.experts) + " experts, got " +
               number(m.expert_groups),
           "such as 8, as in DeepSeek-V3 with 256 experts");
  if (m.groups_per_token < 1 || m.groups_per_token > m.expert_groups ||
      m.experts_per_token > m.experts / m.expert_groups * m.groups_per_token)
    refuse(where + "/groups_per_token",
           "groups_per_token must be from 1 to the " + number(m.expert_groups) +
               " groups, and these must have at least " + number(m.experts_per_token) +
               " experts (experts_per_token), got " + number(m.groups_per_token),
           "DeepSeek-V3 chooses 8 experts in 4 of 8 groups");
}

}  // namespace

void check_experts(const Refusal& refuse, const Module& m, const std::string& where) {
  if (m.experts == 0) {
    const auto alone = [&](const char* key, bool there) {
      if (there)
        refuse(where + "/" + key, std::string(key) + " needs experts",
               "remove the key, or write \"experts\", the number of experts per layer");
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
    alone("shared_gate", m.shared_gate);
    return;
  }
  if (m.shared_gate && m.shared_ffn == 0)
    refuse(where + "/shared_gate", "shared_gate needs a shared expert",
           "remove the key, or write \"shared_ffn\", the width of the shared expert");
  if (m.kind != ModuleKind::language)
    refuse(where + "/experts", std::string("a ") + name(m.kind) + " module has no experts",
           "only language modules have them");
  check_sizes(refuse, where,
              {{"experts", m.experts, 1 << 16},
               {"experts_per_token", m.experts_per_token, m.experts},
               {"expert_ffn", m.expert_ffn, kMostWidth}});
  if (m.shared_ffn < 0 || m.shared_ffn > kMostWidth)
    refuse(where + "/shared_ffn",
           "shared_ffn must be from 0 to " + number(kMostWidth) + ", got " + number(m.shared_ffn),
           "0: no shared expert");
  if (!(m.balance_weight >= 0) || std::isinf(m.balance_weight))
    refuse(where + "/balance_weight", "balance_weight must be at least 0",
           "0.001 to 0.01 is usual");
  if (m.dense_blocks < 0 || m.dense_blocks >= m.layers)
    refuse(where + "/dense_blocks",
           "dense_blocks must be less than the " + number(m.layers) + " layers, got " +
               number(m.dense_blocks),
           "write fewer, or remove \"experts\"");
  if (!(m.routed_scale > 0) || std::isinf(m.routed_scale))
    refuse(where + "/routed_scale", "routed_scale must be above 0",
           "such as 2.5, as in DeepSeek-V3");
  check_groups(refuse, m, where);
  if (m.ffn != 0 && m.dense_blocks == 0)
    refuse(where + "/ffn",
           "ffn must not be given: every block has experts, none a dense feed-forward layer",
           "remove the key, or remove \"experts\"");
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
  needs("query_rank", !latent && m.query_rank != 0, "query_rank needs latent attention");
  needs("value_dim", !latent && m.value_dim != 0, "value_dim needs latent attention");
  needs("attention_sinks", latent && m.attention_sinks, "latent attention has no sinks");
  needs("attention_gate", latent && m.attention_gate, "latent attention has no gate");
  needs("qk_norm", latent && m.qk_norm,
        "latent attention has no qk_norm: it normalizes its latents");
  if (latent && (m.rotary_dim < 2 || m.rotary_dim % 2 != 0))
    refuse(
        where + "/rotary_dim",
        "rotary_dim must be even and at least 2 with latent attention, got " + number(m.rotary_dim),
        "such as 64, as in DeepSeek-V3");
  if (latent && m.kv_heads != m.heads)
    refuse(where + "/kv_heads",
           "kv_heads must be equal to heads with latent attention, got " + number(m.kv_heads) +
               " for " + number(m.heads) + " heads",
           "remove the key");
  if (!latent && (m.rotary_dim > m.head_dim || m.rotary_dim % 2 != 0))
    refuse(where + "/rotary_dim",
           "rotary_dim must be even and at most head_dim, " + number(m.head_dim) + ", got " +
               number(m.rotary_dim),
           "remove the key to rotate whole heads");
  needs("sliding_window", !window && m.sliding_window != 0,
        "sliding_window needs a \"window\" in \"mixers\"");
  needs("local_rope_theta", !window && m.local_rope_theta != 0,
        "local_rope_theta needs a \"window\" in \"mixers\"");
  if (window) check_sizes(refuse, where, {{"sliding_window", m.sliding_window, kMostTokens}});
  if (window && m.local_rope_theta != 0 && !(m.local_rope_theta >= 1))
    refuse(where + "/local_rope_theta", "local_rope_theta must be at least 1", "10000 is usual");
  const bool convolution = has_mixer(m, Mixer::convolution);
  needs("short_conv", !convolution && m.short_conv != 0,
        "short_conv needs a \"convolution\" in \"mixers\"");
  if (convolution) check_sizes(refuse, where, {{"short_conv", m.short_conv, 64}});
  needs("linear_key_heads", !linear && m.linear_key_heads != 0,
        "linear_key_heads needs a \"linear\" in \"mixers\"");
  if (m.mask != Mask::causal && (linear || convolution))
    refuse(where + "/mask",
           "mask must be causal: linear attention and convolutions read all previous tokens",
           "remove the key, or remove \"linear\" and \"convolution\" from \"mixers\"");
  if (!linear) return;
  check_sizes(refuse, where,
              {{"linear_key_heads", m.linear_key_heads, kMostWidth},
               {"linear_value_heads", m.linear_value_heads, kMostWidth},
               {"linear_head_dim", m.linear_head_dim, kMostWidth},
               {"linear_conv", m.linear_conv, 64}});
  if (m.linear_value_heads % m.linear_key_heads != 0)
    refuse(where + "/linear_value_heads",
           "linear_value_heads must be a multiple of the " + number(m.linear_key_heads) +
               " linear_key_heads, got " + number(m.linear_value_heads),
           "each key head serves an equal group of value heads");
}

}  // namespace polyphony
