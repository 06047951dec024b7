#include "shared/datasets/chat_template.h"

namespace polyphony {
namespace {

std::string trimmed(const std::string& text) {
  constexpr const char* kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  return begin == std::string::npos ? std::string()
                                    : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The texts around a turn. All but `end` of an assistant's turn is input only.
struct Around {
  std::string before, end, after;
  bool trims = false;
};

Around around(ChatTemplate chat, Speaker speaker, const std::string& eos) {
  const std::string name(polyphony::name(speaker));
  const bool assistant = speaker == Speaker::assistant;
  switch (chat) {
    case ChatTemplate::chatml:
      return {"<|im_start|>" + name + "\n", "<|im_end|>", "\n"};
    case ChatTemplate::llama3:
      return {"<|start_header_id|>" + name + "<|end_header_id|>\n\n", "<|eot_id|>", "", true};
    case ChatTemplate::vicuna:
      if (assistant) return {"ASSISTANT: ", eos, "", true};
      return speaker == Speaker::user ? Around{"USER: ", "", " ", true} : Around{"", "", " ", true};
    case ChatTemplate::plain:
      break;
  }
  return {"", assistant ? eos : "", ""};
}

}  // namespace

std::vector<RenderedPart> render(ChatTemplate chat, const std::vector<Turn>& turns,
                                 const std::string& eos) {
  std::vector<RenderedPart> parts;
  const auto add = [&](const std::string& text, bool trained) {
    if (text.empty()) return;
    if (!parts.empty() && parts.back().trained == trained)
      parts.back().text += text;
    else
      parts.push_back({text, trained});
  };
  if (chat == ChatTemplate::llama3) add("<|begin_of_text|>", false);
  for (const Turn& turn : turns) {
    const bool trained = turn.speaker == Speaker::assistant;
    const Around marks = around(chat, turn.speaker, eos);
    add(marks.before, false);
    add((marks.trims ? trimmed(turn.text) : turn.text) + marks.end, trained);
    add(marks.after, false);
  }
  return parts;
}

std::vector<std::string> marks_of(ChatTemplate chat) {
  if (chat == ChatTemplate::chatml) return {"<|im_start|>", "<|im_end|>"};
  if (chat == ChatTemplate::llama3)
    return {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
  return {};
}

bool writes_eos(ChatTemplate chat) {
  return chat == ChatTemplate::vicuna || chat == ChatTemplate::plain;
}

}  // namespace polyphony
