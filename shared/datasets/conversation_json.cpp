#include <nlohmann/json.hpp>

#include "shared/datasets/bytes.h"
#include "shared/datasets/found.h"
#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony {
namespace {

using Json = nlohmann::json;

// Returns a text, or the concatenated texts of a list of parts.
std::string text_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string all;
  if (content.is_array())
    for (const Json& part : content)
      if (part.is_object() && part.contains("text")) all += text_of(part["text"]);
  return all;
}

std::string member(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? text_of(object[key]) : std::string();
}

// Removes the marks that stand for images and audio.
std::string without_marks(std::string text) {
  for (const std::string mark : {"<image>", "<audio>"})
    for (std::size_t at; (at = text.find(mark)) != std::string::npos;) text.erase(at, mark.size());
  return text;
}

void add_messages(const Json& messages, Found& found) {
  if (!messages.is_array()) return;
  for (const Json& message : messages) {
    const std::string role = member(message, "from") + member(message, "role");
    const std::string text = without_marks(member(message, "value") + member(message, "content"));
    (role == "gpt" || role == "assistant" ? found.answer : found.prompt) += text;
  }
}

}  // namespace

bool read_conversation(const std::string& line, Found& found, std::vector<std::string>& paths) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  for (const char* key : {"conversations", "messages"})
    if (json.contains(key)) add_messages(json[key], found);
  for (const char* key : {"caption", "text"})
    if (found.answer.empty()) found.answer = without_marks(member(json, key));
  for (const char* key : {"image", "images"}) {
    if (!json.contains(key)) continue;
    if (json[key].is_string()) paths.push_back(json[key].get<std::string>());
    if (json[key].is_array())
      for (const Json& path : json[key])
        if (path.is_string()) paths.push_back(path.get<std::string>());
  }
  return !found.prompt.empty() || !found.answer.empty();
}

std::vector<std::string> conversation_lines(const std::string& path) {
  const std::string text = read_records(path);
  std::vector<std::string> lines;
  if (const std::size_t begin = text.find_first_not_of(" \t\r\n");
      begin != std::string::npos && text[begin] == '[') {
    const Json all = Json::parse(text, nullptr, false);
    if (all.is_discarded())
      throw InputError(path, "", "is not JSON", "give JSON lines, or one array of objects");
    for (const Json& one : all) lines.push_back(one.dump());
    return lines;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.find_first_not_of(" \t\r", at) < end) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace polyphony
