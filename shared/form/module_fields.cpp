#include "shared/form/module_fields.h"

#include <algorithm>
#include <array>

#include "shared/model/limits.h"

namespace polyphony {
namespace {

constexpr std::uint8_t bit(ModuleKind kind) {
  return static_cast<std::uint8_t>(1 << static_cast<int>(kind));
}
constexpr std::uint8_t kVision = bit(ModuleKind::vision), kAudio = bit(ModuleKind::audio),
                       kLanguage = bit(ModuleKind::language),
                       kDiffusion = bit(ModuleKind::diffusion), kEncoders = kVision | kAudio,
                       kReaders = kEncoders | kLanguage, kStacks = kReaders | kDiffusion;
constexpr std::int64_t kMostSide = 1 << 16, kMostExperts = 1 << 16;

bool always(const Module&) { return true; }
bool has_dense(const Module& m) { return m.experts == 0 || m.dense_blocks > 0; }
bool has_experts(const Module& m) { return m.experts > 0; }
bool has_linear(const Module& m) { return m.linear_key_heads > 0; }
bool has_convolution(const Module& m) {
  return std::find(m.mixers.begin(), m.mixers.end(), Mixer::convolution) != m.mixers.end();
}
template <auto member>
bool is_set(const Module& m) {
  static const Module plain;
  return m.*member != plain.*member;
}

constexpr ModuleField kFields[] = {
    {"lora_rank", &Module::lora_rank, 1, kMostWidth, kStacks, "rank of the low-rank update",
     nullptr, is_set<&Module::lora_rank>},
    {"lora_alpha", &Module::lora_alpha, 0, 1'000'000, kStacks,
     "the update is multiplied by lora_alpha / lora_rank; by 1 when absent", nullptr,
     is_set<&Module::lora_alpha>},
    {"layers", &Module::layers, 1, kMostLayers, kStacks, "transformer blocks", always},
    {"hidden", &Module::hidden, 0, kMostWidth, kStacks,
     "width of the residual stream; of a projector: of its middle layer, the language model's when "
     "absent, 0 for one matrix without a middle layer",
     always},
    {"heads", &Module::heads, 1, kMostWidth, kStacks, "attention heads", always},
    {"kv_heads", &Module::kv_heads, 1, kMostWidth, kLanguage,
     "key/value heads; as many as heads when absent"},
    {"head_dim", &Module::head_dim, 1, kMostWidth, kStacks,
     "width of a head; hidden / heads when absent"},
    {"ffn", &Module::ffn, 1, kMostWidth, kStacks, "width of the feed-forward layer", has_dense,
     has_dense},
    {"gated", &Module::gated, 0, 1, kStacks,
     "three feed-forward matrices (SwiGLU) instead of two (GELU)"},
    {"attention_bias", &Module::attention_bias, 0, 1, kStacks,
     "biases in the attention's linear layers"},
    {"qkv_bias", &Module::qkv_bias, 0, 1, kReaders,
     "biases of queries, keys and values, whatever attention_bias says"},
    {"mlp_bias", &Module::mlp_bias, 0, 1, kReaders, "biases in the feed-forward layers"},
    {"qk_norm", &Module::qk_norm, 0, 1, kReaders, "an RMSNorm of every query and key head"},
    {"norm", &Module::norm, 0, 0, kReaders, "RMSNorm, or LayerNorm with biases"},
    {"norm_epsilon", &Module::norm_epsilon, 0, 1, kReaders,
     "added to what a norm divides by, under the root; 1e-5 when absent", nullptr,
     is_set<&Module::norm_epsilon>},
    {"activation", &Module::activation, 0, 0, kLanguage,
     "what a gate passes: silu when absent, gelu, or GPT-OSS' clamped form", nullptr,
     is_set<&Module::activation>},
    {"post_norms", &Module::post_norms, 0, 1, kLanguage,
     "norms of what attention and feed-forward layer add", nullptr, is_set<&Module::post_norms>},
    {"image_size", &Module::image_size, 1, kMostSide, kVision, "pixels on a side", always},
    {"patch", &Module::patch, 1, kMostSide, kVision | kDiffusion,
     "pixels, or positions of a latent, on a side of a patch", always},
    {"channels", &Module::channels, 1, 64, kVision, "colour channels"},
    {"class_token", &Module::class_token, 0, 1, kVision,
     "a learned row before the patches of each image"},
    {"rotary", &Module::rotary, 0, 1, kVision,
     "rotary positions by row and column instead of a learned table"},
    {"mel_bins", &Module::mel_bins, 1, kMostSide, kAudio,
     "features of an audio frame; two frames a token", always},
    {"audio_tokens", &Module::audio_tokens, 1, kMostWidth, kAudio,
     "tokens of an audio clip of full length", always},
    {"latent_channels", &Module::latent_channels, 1, 1 << 12, kDiffusion,
     "channels of the latents it generates", always},
    {"latent_tokens", &Module::latent_tokens, 1, kMostTokens, kDiffusion,
     "patches of a latent of full size", always},
    {"modulation", &Module::modulation, 1, kMostWidth, kDiffusion,
     "width between the features of time and a layer's modulation; hidden when absent"},
    {"loss_weight", &Module::loss_weight, 0, 1'000'000'000, kDiffusion,
     "of its mean squared error beside the mean cross-entropy; 1 when absent"},
    {"vocab", &Module::vocab, 1, 1 << 24, kLanguage, "tokens in the vocabulary", always},
    {"tied", &Module::tied, 0, 1, kLanguage, "the output matrix is the embedding"},
    {"rope_theta", &Module::rope_theta, 1, 1'000'000'000'000, kLanguage | kVision,
     "base of the rotary frequencies", nullptr,
     [](const Module& m) { return m.kind == ModuleKind::language || m.rotary; }},
    {"rope_sections", &Module::rope_sections, 0, kMostWidth, kLanguage,
     "rotary frequencies that turn with time, row and column; all with the position when absent",
     nullptr, is_set<&Module::rope_sections>},
    {"rotary_dim", &Module::rotary_dim, 0, kMostWidth, kLanguage,
     "numbers of a query and key that are rotated: with latent attention those beyond head_dim, "
     "else "
     "the first of head_dim; all of these when absent",
     nullptr, is_set<&Module::rotary_dim>},
    {"window", &Module::window, 0, kMostSide, kVision,
     "patches on a side of the squares that blocks attend in; 0: whole images", nullptr,
     is_set<&Module::window>},
    {"full_attention_blocks", &Module::full_attention_blocks, 0, kMostLayers, kVision,
     "the blocks, from 0, that attend over whole images all the same", nullptr,
     is_set<&Module::full_attention_blocks>},
    {"mixers", &Module::mixers, 1, kMostLayers, kLanguage,
     "how rows meet, block by block, repeated over the stack: attention to all rows before, in a "
     "sliding window, linear attention by the gated delta rule, or a gated short convolution; all "
     "full when absent",
     nullptr, is_set<&Module::mixers>},
    {"mask", &Module::mask, 0, 0, kLanguage,
     "which rows of its sample a row sees: causal when absent; isolated: images and clips see "
     "themselves alone, both ways; modality: all images, or clips, each other; embedded: "
     "themselves "
     "both ways and all before; prefix: rows before the first label each other; documents: causal "
     "in documents, each of which ends with a text item",
     nullptr, is_set<&Module::mask>},
    {"sliding_window", &Module::sliding_window, 0, kMostTokens, kLanguage,
     "tokens that a token sees in blocks with a window, itself included", nullptr,
     is_set<&Module::sliding_window>},
    {"local_rope_theta", &Module::local_rope_theta, 0, 1'000'000'000'000, kLanguage,
     "base of the rotary frequencies in blocks with a window; rope_theta when absent", nullptr,
     is_set<&Module::local_rope_theta>},
    {"attention_sinks", &Module::attention_sinks, 0, 1, kLanguage,
     "a learned logit of every head beside its scores", nullptr, is_set<&Module::attention_sinks>},
    {"attention_gate", &Module::attention_gate, 0, 1, kLanguage,
     "full attention's output passes a gate made of the input", nullptr,
     is_set<&Module::attention_gate>},
    {"key_value_rank", &Module::key_value_rank, 0, kMostWidth, kLanguage,
     "latent attention: width of the row that keys and values are made of; 0: none", nullptr,
     is_set<&Module::key_value_rank>},
    {"query_rank", &Module::query_rank, 0, kMostWidth, kLanguage,
     "latent attention: width of the row that queries are made of; 0: of the input", nullptr,
     is_set<&Module::query_rank>},
    {"value_dim", &Module::value_dim, 0, kMostWidth, kLanguage,
     "latent attention: width of a head's values; head_dim when absent", nullptr,
     is_set<&Module::value_dim>},
    {"linear_key_heads", &Module::linear_key_heads, 0, kMostWidth, kLanguage,
     "linear attention: query and key heads", nullptr, has_linear},
    {"linear_value_heads", &Module::linear_value_heads, 0, kMostWidth, kLanguage,
     "linear attention: value heads, as many for each key head", has_linear, has_linear},
    {"linear_head_dim", &Module::linear_head_dim, 0, kMostWidth, kLanguage,
     "linear attention: width of a head", has_linear, has_linear},
    {"linear_conv", &Module::linear_conv, 0, 64, kLanguage,
     "linear attention: rows that the convolution before it joins", has_linear, has_linear},
    {"short_conv", &Module::short_conv, 0, 64, kLanguage,
     "gated short convolution: rows that it joins", has_convolution, is_set<&Module::short_conv>},
    {"experts", &Module::experts, 0, kMostExperts, kLanguage, "experts per layer; 0: dense",
     nullptr, has_experts},
    {"experts_per_token", &Module::experts_per_token, 0, kMostExperts, kLanguage,
     "experts that a token visits", has_experts, has_experts},
    {"expert_ffn", &Module::expert_ffn, 1, kMostWidth, kLanguage,
     "width of one expert's feed-forward layer", has_experts, has_experts},
    {"shared_ffn", &Module::shared_ffn, 0, kMostWidth, kLanguage,
     "width of the expert that every token visits; 0: none", nullptr, has_experts},
    {"balance_weight", &Module::balance_weight, 0, 1'000'000, kLanguage,
     "weight of the term that evens out the experts' load; 0 when absent", nullptr, has_experts},
    {"dense_blocks", &Module::dense_blocks, 0, kMostLayers, kLanguage,
     "the first blocks, which have a dense feed-forward layer in place of experts", nullptr,
     is_set<&Module::dense_blocks>},
    {"router_scores", &Module::router_scores, 0, 0, kLanguage,
     "what makes weights of router logits: a softmax over the chosen, or sigmoids over their sum",
     nullptr, is_set<&Module::router_scores>},
    {"routed_scale", &Module::routed_scale, 0, 1'000'000, kLanguage,
     "of the chosen experts' sum; 1 when absent", nullptr, is_set<&Module::routed_scale>},
    {"expert_groups", &Module::expert_groups, 0, kMostExperts, kLanguage,
     "groups of experts among which a token chooses first; 0: none", nullptr,
     is_set<&Module::expert_groups>},
    {"groups_per_token", &Module::groups_per_token, 0, kMostExperts, kLanguage,
     "groups of experts that a token chooses", nullptr, is_set<&Module::groups_per_token>},
    {"expert_bias", &Module::expert_bias, 0, 1, kLanguage,
     "biases of the router and of the experts' matrices", nullptr, is_set<&Module::expert_bias>},
};

// Members that follow from others, or are read apart: name, kind, trainable; and of a projector
// source, merge, projector_in, projector_hidden, projector_out; of a diffusion module condition; what
// an abstract module has (shared/scenario_io/scenario_layer_times.cpp).
constexpr std::size_t kOthers = 10;

struct Anything {
  template <class T>
  operator T() const;
};
template <class T, class... Members>
constexpr std::size_t members() {
  if constexpr (requires { T{Members{}..., Anything{}}; })
    return members<T, Members..., Anything>();
  else
    return sizeof...(Members);
}
static_assert(members<Module>() == std::size(kFields) + kOthers, "a row for each member");

// What a member's type says of its form, and how its value is read.
struct FormOf {
  const ModuleField& field;
  Form operator()(int Module::*) const { return integer_form(field.least, field.most); }
  Form operator()(bool Module::*) const { return boolean_form(); }
  Form operator()(double Module::*) const {
    return number_form(static_cast<double>(field.least), static_cast<double>(field.most));
  }
  Form operator()(std::vector<int> Module::* member) const {
    const bool blocks = member == &Module::full_attention_blocks;
    return list_form(integer_form(field.least, field.most), 0, blocks ? kMostLayers : 3);
  }
  Form operator()(std::vector<Mixer> Module::*) const {
    return list_form(choice_form(enum_names<Mixer>()), field.least, field.most);
  }
  template <class Enum>
  Form operator()(Enum Module::*) const {
    return choice_form(enum_names<Enum>());
  }
};

struct Reader {
  const JsonValue& value;
  const char* key;
  Module& module;
  template <class T>
  void operator()(T Module::* member) const {
    if constexpr (std::is_enum_v<T>) {
      if (value.has(key)) module.*member = enum_named<T>(value.at(key).text());
    } else if constexpr (std::is_same_v<T, std::vector<Mixer>>) {
      if (!value.has(key)) return;
      const JsonValue list = value.at(key);
      (module.*member).clear();
      for (std::size_t i = 0; i < list.size(); ++i)
        (module.*member).push_back(enum_named<Mixer>(list.at(i).text()));
    } else {
      value.read(key, module.*member);
    }
  }
};

}  // namespace

Form ModuleField::form() const { return std::visit(FormOf{*this}, member); }

void ModuleField::read(const JsonValue& value, Module& module) const {
  std::visit(Reader{value, key, module}, member);
}

std::span<const ModuleField> module_fields() { return kFields; }

}  // namespace polyphony
