#include "shared/form/module_fields.h"

#include <algorithm>
#include <array>

#include "shared/member_count.h"
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
    {"lora_rank", &Module::lora_rank, 1, kMostWidth, kStacks,
     "rank of the low-rank update; required with \"train\": \"lora\"", nullptr,
     is_set<&Module::lora_rank>},
    {"lora_alpha", &Module::lora_alpha, 0, 1'000'000, kStacks,
     "the low-rank update is multiplied by lora_alpha / lora_rank; by 1 when absent", nullptr,
     is_set<&Module::lora_alpha>},
    {"layers", &Module::layers, 1, kMostLayers, kStacks, "number of transformer blocks", always},
    {"hidden", &Module::hidden, 0, kMostWidth, kStacks,
     "width of the residual stream; projector: width of its hidden layer, the language module's "
     "width when absent, 0: one matrix without a hidden layer",
     always},
    {"heads", &Module::heads, 1, kMostWidth, kStacks, "number of attention heads", always},
    {"kv_heads", &Module::kv_heads, 1, kMostWidth, kLanguage,
     "number of key/value heads; as many as heads when absent"},
    {"head_dim", &Module::head_dim, 1, kMostWidth, kStacks,
     "width of an attention head; hidden / heads when absent"},
    {"ffn", &Module::ffn, 1, kMostWidth, kStacks,
     "width of the feed-forward layer's hidden activations", has_dense, has_dense},
    {"gated", &Module::gated, 0, 1, kStacks,
     "true: three feed-forward matrices (gated, SwiGLU) instead of two (GELU); true for a language "
     "module when absent, else false"},
    {"attention_bias", &Module::attention_bias, 0, 1, kStacks,
     "true: the attention's linear layers (queries, keys, values, output) have biases; when "
     "absent, false for a language module, else true"},
    {"qkv_bias", &Module::qkv_bias, 0, 1, kReaders,
     "true: the linear layers of queries, keys and values have biases even if attention_bias is "
     "false; false when absent"},
    {"mlp_bias", &Module::mlp_bias, 0, 1, kReaders,
     "true: the feed-forward matrices have biases; when absent, false for a language module, else "
     "true"},
    {"qk_norm", &Module::qk_norm, 0, 1, kReaders,
     "true: every query and key head passes an RMSNorm before the rotation; false when absent"},
    {"norm", &Module::norm, 0, 0, kReaders,
     "normalization: rms (RMSNorm) or layer (LayerNorm with biases); when absent, rms for a "
     "language module, layer for an encoder"},
    {"norm_epsilon", &Module::norm_epsilon, 0, 1, kReaders,
     "epsilon of the normalizations, added to the variance or mean square under the root; 1e-5 "
     "when absent",
     nullptr, is_set<&Module::norm_epsilon>},
    {"activation", &Module::activation, 0, 0, kLanguage,
     "activation function of the gate in a gated feed-forward layer: silu, gelu (tanh form), or "
     "clamped (GPT-OSS); silu when absent",
     nullptr, is_set<&Module::activation>},
    {"gelu", &Module::gelu, 0, 0, kEncoders,
     "form of GELU in a feed-forward layer without a gate: erf (exact), tanh (SigLIP), or quick "
     "(CLIP); erf when absent",
     nullptr, is_set<&Module::gelu>},
    {"post_norms", &Module::post_norms, 0, 1, kLanguage,
     "true: the outputs of the attention and of the feed-forward layer are normalized before they "
     "are added to the residual stream; false when absent",
     nullptr, is_set<&Module::post_norms>},
    {"layer_scale", &Module::layer_scale, 0, 1'000, kEncoders,
     "initial value of the learned vectors that the outputs of the attention and of the "
     "feed-forward "
     "layer are multiplied by before they are added to the residual stream (InternViT); 0: no such "
     "vectors; 0 when absent",
     nullptr, is_set<&Module::layer_scale>},
    {"image_size", &Module::image_size, 1, kMostSide, kVision,
     "pixels on each side of the (square) image", always},
    {"patch", &Module::patch, 1, kMostSide, kVision | kDiffusion,
     "pixels, or positions of a latent, on each side of a patch", always},
    {"channels", &Module::channels, 1, 64, kVision, "color channels of an image; 3 when absent"},
    {"patch_bias", &Module::patch_bias, 0, 1, kVision,
     "true: the linear layer of the patches has a bias; true when absent", nullptr,
     is_set<&Module::patch_bias>},
    {"class_token", &Module::class_token, 0, 1, kVision,
     "true: a learned class token precedes the patches of each image and is dropped after the last "
     "normalization; false when absent"},
    {"rotary", &Module::rotary, 0, 1, kVision,
     "true: rotary position embeddings by row and column instead of a learned table; false when "
     "absent"},
    {"alternating_axes", &Module::alternating_axes, 0, 1, kVision,
     "true: of the rotary frequencies, rows have the even and columns the odd ones (Pixtral); "
     "false: both have the same; false when absent",
     nullptr, is_set<&Module::alternating_axes>},
    {"input_norm", &Module::input_norm, 0, 1, kVision,
     "true: the embedded patches are normalized before the first block (CLIP, Pixtral); false when "
     "absent",
     nullptr, is_set<&Module::input_norm>},
    {"final_norm", &Module::final_norm, 0, 1, kVision,
     "true: the output of the last block is normalized; false: it is not, as where LLaVA reads "
     "CLIP; true when absent",
     nullptr, is_set<&Module::final_norm>},
    {"mel_bins", &Module::mel_bins, 1, kMostSide, kAudio,
     "features (mel bins) of an audio frame; two frames make one token", always},
    {"audio_tokens", &Module::audio_tokens, 1, kMostWidth, kAudio,
     "number of encoder tokens of an audio clip of full length", always},
    {"latent_channels", &Module::latent_channels, 1, 1 << 12, kDiffusion,
     "number of channels of the latents that it generates", always},
    {"latent_tokens", &Module::latent_tokens, 1, kMostTokens, kDiffusion,
     "number of patches (tokens) of a latent of full size", always},
    {"modulation", &Module::modulation, 1, kMostWidth, kDiffusion,
     "width of the timestep embedding, from which each layer computes its modulation (adaLN); "
     "hidden when absent"},
    {"loss_weight", &Module::loss_weight, 0, 1'000'000'000, kDiffusion,
     "weight of the module's mean squared error in the loss, relative to the mean cross-entropy; 1 "
     "when absent"},
    {"vocab", &Module::vocab, 1, 1 << 24, kLanguage, "number of tokens in the vocabulary", always},
    {"tied", &Module::tied, 0, 1, kLanguage,
     "true: the output matrix is the token embedding (tied weights); false when absent"},
    {"rope_theta", &Module::rope_theta, 1, 1'000'000'000'000, kLanguage | kVision,
     "base of the rotary frequencies; 10000 when absent", nullptr,
     [](const Module& m) { return m.kind == ModuleKind::language || m.rotary; }},
    {"scaled_embedding", &Module::scaled_embedding, 0, 1, kLanguage,
     "true: token embeddings are multiplied by the square root of hidden (Gemma); false when "
     "absent",
     nullptr, is_set<&Module::scaled_embedding>},
    {"rope_scaling", &Module::rope_scaling, 0, 0, kLanguage,
     "change of the rotary frequencies for a long context: none, linear (all divided by "
     "rope_factor), llama3 (only the slow ones, Llama 3.1), or yarn (YaRN); none when absent",
     nullptr, is_set<&Module::rope_scaling>},
    {"rope_factor", &Module::rope_factor, 0, 1'000'000, kLanguage,
     "rope_scaling: divisor of the frequencies; required with it", nullptr,
     is_set<&Module::rope_factor>},
    {"rope_low_factor", &Module::rope_low_factor, 0, 1'000'000, kLanguage,
     "rope_scaling llama3, yarn: frequencies with fewer turns in rope_context tokens are divided",
     nullptr, is_set<&Module::rope_low_factor>},
    {"rope_high_factor", &Module::rope_high_factor, 0, 1'000'000, kLanguage,
     "rope_scaling llama3, yarn: frequencies with more turns in rope_context tokens stay", nullptr,
     is_set<&Module::rope_high_factor>},
    {"rope_context", &Module::rope_context, 0, kMostTokens, kLanguage,
     "rope_scaling llama3: context of the model before it was extended, in tokens", nullptr,
     is_set<&Module::rope_context>},
    {"rope_attention", &Module::rope_attention, 0, 1'000, kLanguage,
     "rope_scaling yarn: factor of the rotated queries and keys; 1 when absent", nullptr,
     is_set<&Module::rope_attention>},
    {"rope_whole", &Module::rope_whole, 0, 1, kLanguage,
     "rope_scaling yarn: true: the indices of the frequencies between which the change begins and "
     "ends are rounded to whole numbers; true when absent",
     nullptr, is_set<&Module::rope_whole>},
    {"score_factor", &Module::score_factor, 0, 1'000, kLanguage,
     "latent attention: factor of the scores, as DeepSeek-V3 has it with YaRN; 1 when absent",
     nullptr, is_set<&Module::score_factor>},
    {"rope_sections", &Module::rope_sections, 0, kMostWidth, kLanguage,
     "three numbers of rotary frequencies: those that follow time, row and column (multimodal "
     "RoPE); all follow the position in the sample when absent",
     nullptr, is_set<&Module::rope_sections>},
    {"rotary_dim", &Module::rotary_dim, 0, kMostWidth, kLanguage,
     "how many elements of a query and key head are rotated: with latent attention, elements in "
     "addition to head_dim; otherwise, the first ones of head_dim, all when absent",
     nullptr, is_set<&Module::rotary_dim>},
    {"window", &Module::window, 0, kMostSide, kVision,
     "window attention: patches on each side of the square windows that blocks attend in; 0: "
     "blocks attend over whole images; 0 when absent",
     nullptr, is_set<&Module::window>},
    {"full_attention_blocks", &Module::full_attention_blocks, 0, kMostLayers, kVision,
     "window attention: the blocks, counted from 0, that attend over whole images nevertheless; "
     "none when absent",
     nullptr, is_set<&Module::full_attention_blocks>},
    {"mixers", &Module::mixers, 1, kMostLayers, kLanguage,
     "the sequence mixer of each block, repeated over the stack: full (attention to all previous "
     "tokens), window (attention in a sliding window), linear (linear attention by the gated delta "
     "rule), or convolution (gated short convolution); all full when absent",
     nullptr, is_set<&Module::mixers>},
    {"mask", &Module::mask, 0, 0, kLanguage,
     "which tokens of its sample a token attends to. causal: itself and all previous tokens; "
     "isolated: as causal, but an image or clip attends to itself alone, bidirectionally; "
     "modality: as causal, but images attend to all images and clips to all clips, "
     "bidirectionally; embedded: as causal, and an image or clip also to all of itself; prefix: as "
     "causal, and tokens before the first label also to each other; documents: causal inside "
     "documents, each of which ends with a text item. causal when absent",
     nullptr, is_set<&Module::mask>},
    {"sliding_window", &Module::sliding_window, 0, kMostTokens, kLanguage,
     "number of tokens that a token attends to in blocks with mixer \"window\", itself included",
     nullptr, is_set<&Module::sliding_window>},
    {"local_rope_theta", &Module::local_rope_theta, 0, 1'000'000'000'000, kLanguage,
     "base of the rotary frequencies in blocks with mixer \"window\"; rope_theta when absent",
     nullptr, is_set<&Module::local_rope_theta>},
    {"attention_sinks", &Module::attention_sinks, 0, 1, kLanguage,
     "true: every head has a learned logit that takes part in its softmax (attention sink) and has "
     "no value; false when absent",
     nullptr, is_set<&Module::attention_sinks>},
    {"attention_gate", &Module::attention_gate, 0, 1, kLanguage,
     "true: the output of full attention is multiplied by the sigmoid of a linear function of the "
     "input; false when absent",
     nullptr, is_set<&Module::attention_gate>},
    {"key_value_rank", &Module::key_value_rank, 0, kMostWidth, kLanguage,
     "latent attention (MLA): width of the compressed row from which keys and values are computed; "
     "0: no latent attention; 0 when absent",
     nullptr, is_set<&Module::key_value_rank>},
    {"query_rank", &Module::query_rank, 0, kMostWidth, kLanguage,
     "latent attention: width of the compressed row from which queries are computed; 0: queries "
     "are computed from the input; 0 when absent",
     nullptr, is_set<&Module::query_rank>},
    {"value_dim", &Module::value_dim, 0, kMostWidth, kLanguage,
     "latent attention: width of a head's values; head_dim when absent", nullptr,
     is_set<&Module::value_dim>},
    {"linear_key_heads", &Module::linear_key_heads, 0, kMostWidth, kLanguage,
     "linear attention: number of query and key heads", nullptr, has_linear},
    {"linear_value_heads", &Module::linear_value_heads, 0, kMostWidth, kLanguage,
     "linear attention: number of value heads, a multiple of linear_key_heads", has_linear,
     has_linear},
    {"linear_head_dim", &Module::linear_head_dim, 0, kMostWidth, kLanguage,
     "linear attention: width of a head", has_linear, has_linear},
    {"linear_conv", &Module::linear_conv, 0, 64, kLanguage,
     "linear attention: kernel size, in tokens, of the convolution before it", has_linear,
     has_linear},
    {"short_conv", &Module::short_conv, 0, 64, kLanguage,
     "gated short convolution: kernel size in tokens", has_convolution,
     is_set<&Module::short_conv>},
    {"experts", &Module::experts, 0, kMostExperts, kLanguage,
     "number of experts per layer; 0: dense; 0 when absent", nullptr, has_experts},
    {"experts_per_token", &Module::experts_per_token, 0, kMostExperts, kLanguage,
     "number of experts that process a token (top-k)", has_experts, has_experts},
    {"expert_ffn", &Module::expert_ffn, 1, kMostWidth, kLanguage,
     "width of the hidden activations of one expert's feed-forward layer", has_experts,
     has_experts},
    {"shared_ffn", &Module::shared_ffn, 0, kMostWidth, kLanguage,
     "width of the shared expert, which processes every token; 0: none; 0 when absent", nullptr,
     has_experts},
    {"shared_gate", &Module::shared_gate, 0, 1, kLanguage,
     "true: the shared expert's output is multiplied by the sigmoid of a linear function of its "
     "input (Qwen3-Next); false when absent",
     nullptr, is_set<&Module::shared_gate>},
    {"balance_weight", &Module::balance_weight, 0, 1'000'000, kLanguage,
     "weight of the load-balancing loss of the experts; 0 when absent", nullptr, has_experts},
    {"dense_blocks", &Module::dense_blocks, 0, kMostLayers, kLanguage,
     "number of blocks at the start of the stack that have a dense feed-forward layer instead of "
     "experts; 0 when absent",
     nullptr, is_set<&Module::dense_blocks>},
    {"router_scores", &Module::router_scores, 0, 0, kLanguage,
     "how router logits become weights: softmax (over the chosen experts), or sigmoid (sigmoids "
     "divided by their sum); softmax when absent",
     nullptr, is_set<&Module::router_scores>},
    {"routed_scale", &Module::routed_scale, 0, 1'000'000, kLanguage,
     "factor of the sum of the chosen experts' outputs; 1 when absent", nullptr,
     is_set<&Module::routed_scale>},
    {"expert_groups", &Module::expert_groups, 0, kMostExperts, kLanguage,
     "number of expert groups; a token first chooses groups_per_token of them, then experts inside "
     "these; 0: no groups; 0 when absent",
     nullptr, is_set<&Module::expert_groups>},
    {"groups_per_token", &Module::groups_per_token, 0, kMostExperts, kLanguage,
     "number of expert groups that a token chooses; required with expert_groups", nullptr,
     is_set<&Module::groups_per_token>},
    {"choice_bias", &Module::choice_bias, 0, 1, kLanguage,
     "true: a constant per expert is added to its score when experts are chosen (DeepSeek-V3); it "
     "is 0 in a module that begins at random; false when absent",
     nullptr, is_set<&Module::choice_bias>},
    {"expert_bias", &Module::expert_bias, 0, 1, kLanguage,
     "true: the router and the experts' matrices have biases; false when absent", nullptr,
     is_set<&Module::expert_bias>},
};

// Number of members of Module without a row in kFields, because they are derived from other members
// or read elsewhere: name, kind, trainable; source, merge, projector_in, projector_hidden and
// projector_out of a projector; condition of a diffusion module; and abstract
// (shared/scenario_io/scenario_layer_times.cpp).
constexpr std::size_t kOthers = 10;

static_assert(member_count<Module>() == std::size(kFields) + kOthers, "a row for each member");

// The form of a field's value, by the type of its member.
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

// Reads the field's key into the module, if the object has the key.
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
