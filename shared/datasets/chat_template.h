// Renders a conversation as the text that a chat model is trained on, as the built-in templates do:
//   chatml   <|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\nTEXT<|im_end|>\n
//            (Qwen, SmolLM2; their default system messages are not added: state "system")
//   llama3   <|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nTEXT<|eot_id|>…
//   vicuna   SYSTEM USER: TEXT ASSISTANT: TEXT</s>USER: … (LLaVA-1.5)
//   plain    the turns one after another, without marks of the speakers; the assistant's end with
//            the end of text (LLaVA's captions)
// Texts are trimmed in llama3 and vicuna, as in their templates.
// Sources: the chat_template of SmolLM2-135M-Instruct's and Llama-3-8B-Instruct's
// tokenizer_config.json; conv_vicuna_v1 and conv_llava_plain of haotian-liu/LLaVA,
// llava/conversation.py (plain ends with "\n" there).
#pragma once

#include <string>
#include <vector>

#include "shared/data/data.h"
#include "shared/datasets/conversation.h"

namespace polyphony {

struct RenderedPart {
  std::string text;      // may contain kImageMark
  bool trained = false;  // what the model learns to say, its end mark included
  bool operator==(const RenderedPart&) const = default;
};

// Returns the parts of the conversation, in order. `eos`: the end of text, which vicuna and plain
// write after each turn of the assistant.
std::vector<RenderedPart> render(ChatTemplate chat, const std::vector<Turn>& turns,
                                 const std::string& eos);
// Returns whether the template writes `eos`, and whether its text begins with what the tokenizer
// puts in front of every text (<s>).
bool writes_eos(ChatTemplate chat);
// Returns the template as the Jinja text by which transformers' apply_chat_template() renders the
// same (scripts/oracle_chat compares them). Contents are texts, or lists of parts, of which `image`
// stands for {"type": "image"}. `system`: the system message of conversations that have none;
// empty: they get none.
std::string jinja_text(ChatTemplate chat, const std::string& image, const std::string& system);
// Returns the marks of the template that are tokens of a model made for it.
std::vector<std::string> marks_of(ChatTemplate chat);

}  // namespace polyphony
