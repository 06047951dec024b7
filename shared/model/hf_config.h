// A Hugging Face config.json as a module. Known: the families of language_families()
// (shared/model/hf_mixed.cpp); CLIP, SigLIP, InternViT, Pixtral, Qwen2-VL, Qwen2.5-VL (vision); Whisper (audio: its encoder), alone or inside a
// composite configuration (vision_config, audio_config, text_config, llm_config). Others are
// refused by their model_type.
//   Every key stands in the table of shared/model/hf_keys.h. What the module cannot express and
//   training speed hardly feels (a norm, biases, rotary scaling) becomes a note, and so does a key
//   that is not known.
// Source of the key names and defaults: huggingface/transformers configuration_*.py.
#pragma once

#include <string>
#include <vector>

#include "shared/model/model.h"

namespace polyphony {

struct HfModule {
  Module module;  // without a name
  std::vector<std::string> notes;
  std::vector<std::string> image_size_notes;  // of the size in `module`: void when another is said
  int merge =
      0;  // vision: patches on a side that the model's projector joins into one row; 0: not stated
};

// The model types that are read as a module of the kind.
const std::vector<std::string>& hf_types(ModuleKind kind);
// Throws InputError with the configuration's own file and pointer.
HfModule read_hf_config(const std::string& text, const std::string& file, ModuleKind kind);

}  // namespace polyphony
