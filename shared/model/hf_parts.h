// The parts of read_hf_config(). Each reads one key at a time and throws InputError at that key.
// Configurations hold many other keys, so no Form covers a whole configuration.
#pragma once

#include "shared/model/hf_config.h"
#include "shared/model/limits.h"
#include "shared/text/strict_json.h"

namespace polyphony {

int whole(const JsonValue& config, const char* key, std::int64_t most);
int whole_or(const JsonValue& config, const char* key, std::int64_t most, int otherwise);
// Reads an integer with a default; if `usual` is 0, the key is required.
int whole_or_usual(const JsonValue& config, const char* key, std::int64_t most, int usual);
bool flag_or(const JsonValue& config, const char* key, bool otherwise);
std::string text_or(const JsonValue& config, const char* key, const std::string& otherwise);
// Returns `value`, the value of `key`, divided by a number of heads; throws if it does not divide.
int divided(const JsonValue& config, const char* key, int value, int by);

// Read a configuration whose model_type is known to belong to the kind. `is_part`: of a composite
// configuration, whose parts omit the values that the model's class has anyway.
HfModule read_hf_vision(const JsonValue& config, const std::string& type, bool is_part);
HfModule read_hf_audio(const JsonValue& config, const std::string& type);
// Makes a vision module end at the block whose rows a LLaVA reads: those of
// `vision_feature_layer`, without the norm after the last block.
void select_llava_rows(const JsonValue& whole, HfModule& result);
// `whole_config`: the composite configuration that `config` is part of, or `config` itself.
HfModule read_hf_language(const JsonValue& config, const std::string& type,
                          const JsonValue& whole_config);

// A family of language models with similar configurations (shared/model/hf_mixed.cpp).
struct LanguageFamily {
  std::vector<std::string> types;  // values of "model_type"
  // Values of keys that a file may omit; 0: the key is required.
  int heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  // Values that a part of a composite configuration may omit, too; 0: the key is required.
  struct Part {
    int layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, vocab = 0;
  } part{};
  bool tied = false;
  double rope_theta = 1e4;
  double norm_epsilon = 1e-6;
  const char* ffn = "intermediate_size";  // the key of F; tried before intermediate_size
  // Properties that the model's code has without a key.
  bool qkv_bias = false, qk_norm = false;
  // Reads the rest: differing blocks, other kinds of attention, routing; null: there is none.
  void (*read)(const JsonValue& config, const std::string& type, HfModule& result) = nullptr;
};
// Returns `interval` mixers: `others`, and the last one full.
std::vector<Mixer> every(int interval, Mixer others);
void read_layer_types(const JsonValue& config, Module& m);
const std::vector<LanguageFamily>& language_families();
double number_or(const JsonValue& config, const char* key, double otherwise);
// Reads the activation of a gated feed-forward part; throws InputError if it is not supported.
void read_gates(const JsonValue& config, const char* key, const char* usual, Module& m);
// Returns the epsilon of norms, from the first key that has it.
double epsilon_or(const JsonValue& config, double usual);

}  // namespace polyphony
