// Reads a Hugging Face config.json as a module. Supported: the families of language_families()
// (shared/model/hf_mixed.cpp); CLIP, SigLIP, InternViT, Pixtral, Qwen2-VL, Qwen2.5-VL, Qwen3-VL,
// Qwen3.5, Qwen3-Omni, Kimi-VL, Idefics 3 (vision); the encoders of Whisper, Qwen2-Audio and
// Qwen3-Omni (audio). The configuration may stand alone or be part of a composite one
// (vision_config, audio_config, text_config, llm_config); of Qwen3-Omni it is that of the thinker.
// Other model types are rejected by name.
//
//   Every supported key is in the table of shared/model/hf_keys.h. What a Module cannot express and
//   hardly affects training speed (a norm, biases, RoPE scaling) becomes a note, and so does an
//   unknown key.
// Source of the key names and defaults: huggingface/transformers configuration_*.py.
#pragma once

#include <string>
#include <vector>

#include "shared/model/model.h"
#include "shared/text/strict_json.h"

namespace polyphony {

struct HfModule {
  Module module;  // without a name
  std::vector<std::string> notes;
  // Those of the notes that say that outputs differ from the published model's, so that its weights
  // would not mean the same here.
  std::vector<std::string> deviations;
  std::vector<std::string> image_size_notes;  // apply only if the scenario sets no image size
  // Vision: patches per side that the model's projector merges into one row; 0: not stated.
  int merge = 0;

  void deviate(const std::string& text) {
    notes.push_back(text);
    deviations.push_back(text);
  }
};

// Returns the configuration whose parts are modules: the file's, or that of Qwen3-Omni's thinker in
// it. Throws InputError if it is not a JSON object.
JsonValue hf_root(const std::string& text, const std::string& file);
// Returns whether rows of several of the encoder's blocks enter the language module (DeepStack).
bool has_deep_rows(const std::string& model_type);
// Returns the model types that can be read as a module of this kind.
const std::vector<std::string>& hf_types(ModuleKind kind);
// Returns the module and its notes. Throws InputError that names the configuration's file and
// pointer.
HfModule read_hf_config(const std::string& text, const std::string& file, ModuleKind kind);
// Returns the model type of a configuration: of its part that describes `kind` if it is composite,
// for a projector that of the whole. Throws InputError if it states none.
std::string hf_model_type(const std::string& text, const std::string& file, ModuleKind kind);

}  // namespace polyphony
