#include "shared/model/presets.h"
#include "shared/scenario/scenario_form.h"

namespace polyphony {
namespace {

Form size_form(std::int64_t most = kMostWidth) { return integer_form(1, most); }

const ObjectForm& edge_form() {
  static const ObjectForm form{"edge",
                               "An edge between inner layers",
                               {{"module", text_form("vision"), "the module it comes from", true},
                                {"from_layer", integer_form(0, kMostLayers),
                                 "position in that module's layer stack; its last when absent"},
                                {"to_layer", integer_form(0, kMostLayers),
                                 "position in this module's layer stack; 0 is its input"}},
                               {}};
  return form;
}

std::vector<std::string> all_preset_names() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) names.push_back(preset.name);
  return names;
}

const ObjectForm& module_form() {
  const Form source = any_form({text_form("vision"), object_form(edge_form())});
  static const ObjectForm form{
      "module",
      "A part of the model: a stack of layers. Dimensions come from a preset, a Hugging Face "
      "configuration, or the keys here",
      {{"kind", choice_form(enum_names(ModuleKind::projector)),
        "what it is; the module's own name when absent"},
       {"from", any_form({text_form("vision"), object_form(edge_form()), list_form(source, 1, 16)}),
        "the module or modules whose output it reads"},
       {"preset", choice_form(all_preset_names()), "a published model by name"},
       {"hf", text_form("llama-3.1-70b/config.json"), "path of a Hugging Face config.json"},
       {"train", choice_form(enum_names(Trainable::lora)),
        "which weights are trained; full when absent"},
       {"lora_rank", size_form(), "rank of the low-rank update"},
       {"lora_alpha", number_form(0, 1e6),
        "the update is multiplied by lora_alpha / lora_rank; by 1 when absent"},
       {"layers", integer_form(1, kMostLayers), "transformer blocks"},
       {"hidden", integer_form(0, kMostWidth),
        "width of the residual stream; of a projector: of its middle layer, the language model's "
        "when absent, 0 for one matrix without a middle layer"},
       {"heads", size_form(), "attention heads"},
       {"kv_heads", size_form(), "key/value heads; as many as heads when absent"},
       {"head_dim", size_form(), "width of a head; hidden / heads when absent"},
       {"ffn", size_form(), "width of the feed-forward layer"},
       {"gated", boolean_form(), "three feed-forward matrices (SwiGLU) instead of two (GELU)"},
       {"attention_bias", boolean_form(), "biases in the attention's linear layers"},
       {"qkv_bias", boolean_form(),
        "biases of queries, keys and values, whatever attention_bias says"},
       {"mlp_bias", boolean_form(), "biases in the feed-forward layers"},
       {"qk_norm", boolean_form(), "an RMSNorm of every query and key head"},
       {"norm", choice_form(enum_names(Norm::layer)), "RMSNorm, or LayerNorm with biases"},
       {"image_size", size_form(1 << 16), "pixels on a side"},
       {"patch", size_form(1 << 16), "pixels, or positions of a latent, on a side of a patch"},
       {"channels", integer_form(1, 64), "colour channels"},
       {"latent_channels", integer_form(1, 1 << 12), "channels of the latents it generates"},
       {"latent_tokens", integer_form(1, kMostTokens), "patches of a latent of full size"},
       {"modulation", size_form(),
        "width between the features of time and a layer's modulation; hidden when absent"},
       {"loss_weight", number_form(0, 1e9),
        "of its mean squared error beside the mean cross-entropy; 1 when absent"},
       {"class_token", boolean_form(), "a learned row before the patches of each image"},
       {"rotary", boolean_form(), "rotary positions by row and column instead of a learned table"},
       {"window", integer_form(0, 1 << 16),
        "patches on a side of the squares that blocks attend in; 0: whole images"},
       {"full_attention_blocks", list_form(integer_form(0, kMostLayers), 0, kMostLayers),
        "the blocks, from 0, that attend over whole images all the same"},
       {"mel_bins", integer_form(1, 1 << 16), "features of an audio frame; two frames a token"},
       {"audio_tokens", size_form(), "tokens of an audio clip of full length"},
       {"vocab", size_form(1 << 24), "tokens in the vocabulary"},
       {"tied", boolean_form(), "the output matrix is the embedding"},
       {"rope_theta", number_form(1, 1e12), "base of the rotary frequencies"},
       {"rope_sections", list_form(integer_form(0, kMostWidth), 0, 3),
        "rotary frequencies that turn with time, row and column; all with the position when "
        "absent"},
       {"merge", any_form({choice_form({"1x1", "2x2", "3x3", "4x4"}), integer_form(1, 64)}),
        "neighbouring patches, or neighbouring frames of audio, that a projector joins into one "
        "token"},
       {"experts", integer_form(0, 1 << 16), "experts per layer; 0: dense"},
       {"experts_per_token", integer_form(0, 1 << 16), "experts that a token visits"},
       {"expert_ffn", size_form(), "width of one expert's feed-forward layer"},
       {"shared_ffn", integer_form(0, kMostWidth),
        "width of the expert that every token visits; 0: none"},
       {"balance_weight", number_form(0, 1e6),
        "weight of the term that evens out the experts' load; 0 when absent"}},
      {}};
  return form;
}

}  // namespace

const ObjectForm& model_form() {
  static const ObjectForm form{
      "model", "Modules by name; \"from\" makes the edges", {}, {object_form(module_form())}};
  return form;
}

std::vector<std::string> module_keys(ModuleKind kind) {
  if (kind == ModuleKind::projector) return {"kind", "from", "train", "merge", "hidden"};
  if (kind == ModuleKind::diffusion)
    return {"kind",          "from",       "preset",         "train", "lora_rank",
            "lora_alpha",    "layers",     "hidden",         "heads", "head_dim",
            "ffn",           "gated",      "attention_bias", "patch", "latent_channels",
            "latent_tokens", "modulation", "loss_weight"};
  std::vector<std::string> keys = {"kind",       "from",     "preset", "hf",    "train",
                                   "lora_rank",  "layers",   "hidden", "heads", "head_dim",
                                   "lora_alpha", "ffn",      "gated",  "norm",  "attention_bias",
                                   "qkv_bias",   "mlp_bias", "qk_norm"};
  if (kind == ModuleKind::vision)
    keys.insert(keys.end(), {"image_size", "patch", "channels", "class_token", "rotary",
                             "rope_theta", "window", "full_attention_blocks"});
  if (kind == ModuleKind::audio) keys.insert(keys.end(), {"mel_bins", "audio_tokens"});
  if (kind == ModuleKind::language)
    keys.insert(keys.end(), {"kv_heads", "vocab", "tied", "rope_theta", "rope_sections", "experts",
                             "experts_per_token", "expert_ffn", "shared_ffn", "balance_weight"});
  return keys;
}

}  // namespace polyphony
