// Words of other programs (Megatron-LM's options, DeepSpeed's and Hugging Face's keys) and what to
// write instead of them: hints for unknown keys and values.
#pragma once

#include <string>
#include <vector>

namespace polyphony {

// The hint for `word`, upper and lower case alike, where its replacement is one of `known`; else
// empty.
std::string hint_for_other_word(const std::string& word, const std::vector<std::string>& known);

}  // namespace polyphony
