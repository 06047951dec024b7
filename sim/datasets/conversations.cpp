#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "sim/datasets/bytes.h"
#include "sim/datasets/found.h"

namespace polyphony::sim {
namespace {

using Json = nlohmann::json;

// A text, or the texts of a list of parts.
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

// Marks where pictures stand are no words.
std::string without_marks(std::string text) {
  for (const std::string mark : {"<image>", "<audio>"})
    for (std::size_t at; (at = text.find(mark)) != std::string::npos;) text.erase(at, mark.size());
  return text;
}

void add_turns(const Json& turns, Found& found) {
  if (!turns.is_array()) return;
  for (const Json& turn : turns) {
    const std::string who = member(turn, "from") + member(turn, "role");
    const std::string said = without_marks(member(turn, "value") + member(turn, "content"));
    (who == "gpt" || who == "assistant" ? found.answer : found.prompt) += said;
  }
}

}  // namespace

bool read_conversation(const std::string& line, Found& found, std::vector<std::string>& paths) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  for (const char* key : {"conversations", "messages"})
    if (json.contains(key)) add_turns(json[key], found);
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
      throw InputError(path, "", "is no JSON", "give JSON lines, or one array of objects");
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

}  // namespace polyphony::sim
