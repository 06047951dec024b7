#include <nlohmann/json.hpp>
#include <optional>

#include "shared/datasets/conversation.h"
#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony {
namespace {

using Json = nlohmann::json;

// Reads one JSON object of a data set.
class Reader {
 public:
  explicit Reader(const Json& object) {
    for (const char* key : {"image", "images"})
      if (object.contains(key)) add_paths(object[key], result_.pictures);
    for (const char* key : {"audio", "audios", "sound", "sounds"})
      if (object.contains(key)) add_paths(object[key], result_.sounds);
    for (const char* key : {"conversations", "messages"})
      if (object.contains(key)) add_turns(object[key]);
    if (!result_.conversation.turns.empty()) return;
    for (const char* key : {"caption", "text"})
      if (const std::string text = member(object, key); !text.empty()) {
        result_.conversation.turns.push_back({Speaker::assistant, text});
        return;
      }
  }
  ReadConversation take() { return std::move(result_); }

 private:
  static void add_paths(const Json& paths, std::vector<std::string>& all) {
    if (paths.is_string()) all.push_back(paths.get<std::string>());
    if (!paths.is_array()) return;
    for (const Json& path : paths)
      if (path.is_string()) all.push_back(path.get<std::string>());
  }

  void refuse(const char* why, const std::string& about) {
    constexpr std::size_t kMost = 40;
    if (!result_.refused.empty()) return;
    result_.refused = why;
    result_.about = about.substr(0, kMost);
  }

  // Adds the mark of a part, and its path if it has one.
  void add_part(const Json& part, const std::string& type, const char* mark, std::string& text,
                std::vector<std::string>& paths) {
    text += mark;
    if (part.contains(type)) add_paths(part[type], paths);
  }
  // {"type": "image_url", "image_url": {"url": PATH}}, or the path itself.
  void add_url(const Json& part, std::string& text) {
    text += kImageMark;
    const Json* url = part.contains("image_url") ? &part["image_url"] : nullptr;
    if (url && url->is_object()) url = url->contains("url") ? &(*url)["url"] : nullptr;
    if (!url || !url->is_string()) return;
    const std::string path = url->get<std::string>();
    if (path.starts_with("data:") || path.find("://") != std::string::npos)
      return refuse("an image that is not a file", path);
    result_.pictures.push_back(path);
  }

  // Returns a text, or the concatenated parts of a list.
  std::string text_of(const Json& content) {
    if (content.is_string()) return content.get<std::string>();
    std::string all;
    if (!content.is_array()) return all;
    for (const Json& part : content) {
      if (!part.is_object()) continue;
      if (part.contains("text")) all += text_of(part["text"]);
      const std::string type = part.contains("type") && part["type"].is_string()
                                   ? part["type"].get<std::string>()
                                   : "text";
      if (type == "image")
        add_part(part, type, kImageMark, all, result_.pictures);
      else if (type == "audio")
        add_part(part, type, kAudioMark, all, result_.sounds);
      else if (type == "image_url")
        add_url(part, all);
      else if (type != "text")
        refuse("a part of an unknown type", type);
    }
    return all;
  }
  std::string member(const Json& object, const char* key) {
    return object.is_object() && object.contains(key) ? text_of(object[key]) : std::string();
  }

  static std::optional<Speaker> speaker_of(const std::string& role) {
    if (role == "gpt" || role == "assistant") return Speaker::assistant;
    if (role == "system") return Speaker::system;
    for (const char* other : {"user", "human", "tool", "observation", "function"})
      if (role == other) return Speaker::user;
    return std::nullopt;
  }

  void add_turns(const Json& messages) {
    if (!messages.is_array()) return;
    for (const Json& message : messages) {
      const std::string role = member(message, "from") + member(message, "role");
      const std::string text = member(message, "value") + member(message, "content");
      const std::optional<Speaker> speaker = speaker_of(role);
      if (!speaker)
        refuse(role.empty() ? "a turn without a role" : "a turn of an unknown role", role);
      result_.conversation.turns.push_back({speaker.value_or(Speaker::user), text});
    }
  }

  ReadConversation result_;
};

}  // namespace

ReadConversation read_conversation(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return {{}, {}, {}, "not a JSON object", ""};
  return Reader(json).take();
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
