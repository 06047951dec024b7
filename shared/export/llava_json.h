// A LLaVA made of a vision module, a projector and a language module that were trained together but
// come from several folders: one model that transformers loads (LlavaForConditionalGeneration).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony {

// The modules of a LLaVA, as positions in Model::modules.
struct LlavaModules {
  std::size_t vision = 0, projector = 0, language = 0;
};

// Returns them. Throws InputError if the model is no LLaVA: it has other modules, the rows of the
// vision module pass a last norm, or the projector merges patches or has another width.
// `sources`: by module.
LlavaModules find_llava(const Scenario& scenario, const std::vector<ModuleWeights>& sources);

// What stands in front of the tensor names of a module, and of those at the model's head.
struct LlavaRoots {
  const char* module;
  const char* head;
};
// Returns them as transformers 5.23's save_pretrained() writes them.
LlavaRoots llava_roots(ModuleKind kind);

// Returns the id of the token that stands for images in the texts given to the model. Throws
// InputError that names --image-token if the tokenizer beside the language module's config.json is
// missing, or `token` is not one of its tokens.
std::int32_t image_token_id(const ModuleWeights& language, const std::string& token);

// Returns config.json. `vision`, `language`: the configurations of these modules alone.
std::string llava_config(const Module& vision, const std::string& vision_config,
                         const std::string& language_config, const std::string& format,
                         std::int32_t image_token);

// Returns processor_config.json, with which transformers writes a text's image tokens.
std::string llava_processor(const Module& vision, const std::string& image_token);

// Returns a preprocessor_config.json that says how training prepares images without one
// (exec/data/image_processor.h): as SigLIP's.
std::string plain_preprocessor(const Module& vision);

}  // namespace polyphony
