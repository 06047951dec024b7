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
HfModule read_hf_language(const JsonValue& config, const std::string& type);
// What only some language models have: attention that is latent, windowed or linear; DeepSeek's way of
// routing, GPT-OSS' experts (shared/model/hf_mixed.cpp).
void read_hf_mixed(const JsonValue& config, const std::string& type, HfModule& result);
double number_or(const JsonValue& config, const char* key, double otherwise);

}  // namespace polyphony
