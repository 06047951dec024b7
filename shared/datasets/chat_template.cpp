#include "shared/datasets/chat_template.h"

namespace polyphony {
namespace {

std::string trimmed(const std::string& text) {
  constexpr const char* kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  return begin == std::string::npos ? std::string()
                                    : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Returns the text as a string of Jinja, which reads the escapes of Python.
std::string jinja_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? "\\n" : std::string(1, c);
  }
  return quoted + "\"";
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

std::string jinja_text(ChatTemplate chat, const std::string& image, const std::string& system) {
  const std::string before = system.empty()
                                 ? ""
                                 : R"({%- if not messages or messages[0].role != "system" -%}
{%- set messages = [{"role": "system", "content": )" +
                                       jinja_string(system) + R"(}] + messages -%}
{%- endif -%}
)";
  const std::string text = before + R"({%- macro text(content) -%}
{%- if content is string -%}{{ content }}
{%- else -%}{%- for part in content -%}{{ ")" +
                           image + R"(" if part.type == "image" else part.text }}{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- for message in messages -%}
)";
  switch (chat) {
    case ChatTemplate::chatml:
      return text +
             R"({{- "<|im_start|>" + message.role + "\n" + text(message.content) + "<|im_end|>\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- "<|im_start|>assistant\n" -}}
{%- endif -%})";
    case ChatTemplate::llama3:
      return R"({{- "<|begin_of_text|>" -}}
)" + text + R"({{- "<|start_header_id|>" + message.role + "<|end_header_id|>\n\n" -}}
{{- text(message.content) | trim + "<|eot_id|>" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- "<|start_header_id|>assistant<|end_header_id|>\n\n" -}}
{%- endif -%})";
    case ChatTemplate::vicuna:
      return text + R"({%- set said = text(message.content) | trim -%}
{%- if message.role == "system" -%}{{- said + " " -}}
{%- elif message.role == "user" -%}{{- "USER: " + said + " " -}}
{%- else -%}{{- "ASSISTANT: " + said + eos_token -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "ASSISTANT: " -}}{%- endif -%})";
    case ChatTemplate::plain:
      break;
  }
  return text +
         R"({{- text(message.content) + (eos_token if message.role == "assistant" else "") -}}
{%- endfor -%})";
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
