// A conversation of a data set, as its file has it: turns of system, user and assistant.
//   Images and audio clips stand in a turn's text where kImageMark and kAudioMark are. Those
//   without a mark come before the first turn of the user: images, then clips.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/enum_names.h"

namespace polyphony {

inline constexpr const char* kImageMark = "<image>";  // as in LLaVA's files
inline constexpr const char* kAudioMark = "<audio>";  // as in LLaMA-Factory's and ms-swift's

enum class Speaker : std::uint8_t { system, user, assistant };
constexpr auto names(Speaker) { return names_of<Speaker>("system", "user", "assistant"); }

struct Turn {
  Speaker speaker = Speaker::user;
  std::string text;
  bool operator==(const Turn&) const = default;
};
struct Conversation {
  std::vector<Turn> turns;
  bool empty() const;  // whether there is no text at all
  // Returns all that the assistant says, or all that the others say, joined, without marks.
  std::string answers() const;
  std::string prompts() const;
  // Returns how often the text has `mark`.
  std::size_t marks(const std::string& mark) const;
};

void erase_all(std::string& text, const std::string& mark);
// Returns the text without the marks of images and audio clips.
std::string without_marks(std::string text);

// A conversation of a file, and the paths of the images and audio clips that it names.
struct ReadConversation {
  Conversation conversation;
  std::vector<std::string> pictures, sounds;
  // Why the sample cannot be used, of few values, and what it is about; empty: it can.
  std::string refused, about;
};
// Reads one JSON object ("conversations", "messages", "caption" or "text"). The conversation is
// empty if the line is no JSON object or holds no text.
//   speakers   "user" and "human"; "tool", "observation" and "function" as a user; "assistant" and
//              "gpt"; "system". Others are refused
//   parts      {"type": "text" | "image" | "audio" | "image_url", …}. Others are refused
ReadConversation read_conversation(const std::string& line);
// Returns each object of a file of JSON lines, or of one array, as text. Throws InputError if the
// file is missing, or is an array that is damaged.
std::vector<std::string> conversation_lines(const std::string& path);

}  // namespace polyphony
