// The pieces of read_hf_config(): one key of a configuration at a time, refused in its own place.
// Configurations hold many other keys, so no Form covers the whole.
#pragma once

#include "shared/model/hf_config.h"
#include "shared/model/limits.h"
#include "shared/text/strict_json.h"

namespace polyphony {

int whole(const JsonValue& config, const char* key, std::int64_t most);
int whole_or(const JsonValue& config, const char* key, std::int64_t most, int otherwise);
bool flag_or(const JsonValue& config, const char* key, bool otherwise);
std::string text_or(const JsonValue& config, const char* key, const std::string& otherwise);
// `value`, which stands at `key`, over a number of heads.
int divided(const JsonValue& config, const char* key, int value, int by);

// Of a configuration whose model_type is known to belong to the kind.
HfModule read_hf_vision(const JsonValue& config, const std::string& type);
HfModule read_hf_audio(const JsonValue& config);
// `whole_config`: the composite configuration that it is part of, or itself.
HfModule read_hf_language(const JsonValue& config, const std::string& type,
                          const JsonValue& whole_config);

// Language models whose configurations are alike (shared/model/hf_mixed.cpp).
struct LanguageFamily {
  std::vector<std::string> types;  // values of "model_type"
  // What a file may leave out; 0: it must not.
  int heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  bool tied = false;
  double rope_theta = 1e4;
  double norm_epsilon = 1e-6;
  const char* ffn = "intermediate_size";  // the key of F, before intermediate_size
  // What the models have without saying so.
  bool qkv_bias = false, qk_norm = false;
  // The rest: blocks that differ or attend otherwise, ways of routing; null: there is none.
  void (*read)(const JsonValue& config, const std::string& type, HfModule& result) = nullptr;
};
// `others`, and every `interval`-th block full.
std::vector<Mixer> every(int interval, Mixer others);
void read_layer_types(const JsonValue& config, Module& m);
const std::vector<LanguageFamily>& language_families();
double number_or(const JsonValue& config, const char* key, double otherwise);
// What a gate passes, by its name; others are refused.
void read_gates(const JsonValue& config, const char* key, const char* usual, Module& m);
// The epsilon of norms, by whichever key has it.
double epsilon_or(const JsonValue& config, double usual);

}  // namespace polyphony
