#include "shared/datasets/conversation.h"

#include <algorithm>

namespace polyphony {

bool Conversation::empty() const {
  return std::all_of(turns.begin(), turns.end(),
                     [](const Turn& turn) { return without_marks(turn.text).empty(); });
}

std::string Conversation::answers() const {
  std::string all;
  for (const Turn& turn : turns)
    if (turn.speaker == Speaker::assistant) all += without_marks(turn.text);
  return all;
}

std::string Conversation::prompts() const {
  std::string all;
  for (const Turn& turn : turns)
    if (turn.speaker != Speaker::assistant) all += without_marks(turn.text);
  return all;
}

std::size_t Conversation::marks(const std::string& mark) const {
  std::size_t marks = 0;
  for (const Turn& turn : turns)
    for (std::size_t at = 0; (at = turn.text.find(mark, at)) != std::string::npos;
         at += mark.size())
      ++marks;
  return marks;
}

void erase_all(std::string& text, const std::string& mark) {
  for (std::size_t at; (at = text.find(mark)) != std::string::npos;) text.erase(at, mark.size());
}

std::string without_marks(std::string text) {
  for (const char* mark : {kImageMark, kAudioMark}) erase_all(text, mark);
  return text;
}

}  // namespace polyphony
