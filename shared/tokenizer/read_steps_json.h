// Reads the lists of steps of a tokenizer.json. Each function appends the steps of one value, which
// may be a sequence of others.
#pragma once

#include "shared/tokenizer/json_node.h"
#include "shared/tokenizer/read_parts_json.h"

namespace polyphony::tokenizing {

void read_normalizer(const JsonNode& node, std::vector<NormalizerStep>& steps, int depth = 0);
void read_pre_tokenizer(const JsonNode& node, std::vector<PreTokenizerStep>& steps, int depth = 0);
void read_decoder(const JsonNode& node, std::vector<DecoderStep>& steps, int depth = 0);
void read_post_processor(const JsonNode& node, Frame& frame, int depth = 0);

// Returns the node's "type"; refuses more levels of sequences than any tokenizer has.
const std::string& type_of(const JsonNode& node, int depth);
// Refuses a type that the reader does not know.
[[noreturn]] void refuse_type(const JsonNode& node, const std::string& what,
                              const std::vector<std::string>& known);
// Returns the pattern of {"pattern": {"String" or "Regex": ...}}.
Pattern pattern_of(const JsonNode& node);
// Returns a text that must be one character.
std::string character_of(const JsonNode& node);

}  // namespace polyphony::tokenizing
