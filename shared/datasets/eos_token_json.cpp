#include <filesystem>
#include <nlohmann/json.hpp>

#include "shared/datasets/conversation_samples.h"
#include "shared/files/whole.h"

namespace polyphony {

std::string eos_token_beside(const std::string& tokenizer) {
  namespace fs = std::filesystem;
  const std::string file = (fs::path(tokenizer).parent_path() / "tokenizer_config.json").string();
  if (!fs::exists(file)) return "";
  const auto config = nlohmann::json::parse(read_file(file), nullptr, false);
  if (!config.is_object() || !config.contains("eos_token")) return "";
  // A text, or an added token with its text in "content".
  const auto& token = config["eos_token"];
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string())
    return token["content"].get<std::string>();
  return "";
}

}  // namespace polyphony
