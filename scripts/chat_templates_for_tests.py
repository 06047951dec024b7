"""Chat templates for scripts/oracle_chat: our own Jinja texts of the published
formats that shared/datasets/chat_template.h names. `eos` is the tokenizer's end of text.

A content is a text or a list of parts, {"type": "text", "text": ...} or {"type": "image"}.
"""

_TEXT = """{%- macro text(content, image) -%}
{%- if content is string -%}{{ content }}
{%- else -%}{%- for part in content -%}{{ image if part.type == "image" else part.text }}{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
"""


def _chatml(image):
    return _TEXT + f"""{{%- set image = "{image}" -%}}""" + r"""
{%- for message in messages -%}
{{- "<|im_start|>" + message.role + "\n" + text(message.content, image) + "<|im_end|>\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|im_start|>assistant\n" -}}{%- endif -%}"""


TEMPLATES = {
    "chatml": _chatml("<image>"),
    "llama3": _TEXT + r"""{{- "<|begin_of_text|>" -}}
{%- for message in messages -%}
{{- "<|start_header_id|>" + message.role + "<|end_header_id|>\n\n" + text(message.content, "<image>") | trim + "<|eot_id|>" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "<|start_header_id|>assistant<|end_header_id|>\n\n" -}}{%- endif -%}""",
    "vicuna": _TEXT + r"""{%- for message in messages -%}
{%- set said = text(message.content, "<image>") | trim -%}
{%- if message.role == "system" -%}{{- said + " " -}}
{%- elif message.role == "user" -%}{{- "USER: " + said + " " -}}
{%- else -%}{{- "ASSISTANT: " + said + eos_token -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "ASSISTANT: " -}}{%- endif -%}""",
    "plain": _TEXT + r"""{%- for message in messages -%}
{{- text(message.content, "<image>") + (eos_token if message.role == "assistant" else "") -}}
{%- endfor -%}""",
}
ENDS = {"chatml": "<|im_end|>", "llama3": "<|eot_id|>", "vicuna": "</s>", "plain": "</s>"}  # of an assistant's turn, trained with it
