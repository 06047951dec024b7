// Checks of vision and audio modules (shared/validate/refusal.h).
#include "shared/form/scenario_form.h"
#include "shared/text/number_text.h"
#include "shared/validate/refusal.h"

namespace polyphony {
namespace {

void check_encoder_heads(const Refusal& refuse, const Module& m, const std::string& where) {
  if (m.kv_heads != m.heads)
    refuse(where,
           std::string("kv_heads must be equal to heads in a module of kind ") + name(m.kind),
           "remove \"kv_heads\"");
}

void check_windows(const Refusal& refuse, const Module& m, const std::string& where) {
  if (m.window < 0)
    refuse(where + "/window", "window must be at least 0, got " + number(m.window),
           "0: blocks attend over whole images");
  if (m.window == 0 && !m.full_attention_blocks.empty())
    refuse(where + "/full_attention_blocks",
           "full_attention_blocks needs a window: without one, all blocks attend over whole images",
           "remove the key, or write \"window\"");
  for (const int block : m.full_attention_blocks)
    if (block < 0 || block >= m.layers)
      refuse(where + "/full_attention_blocks",
             "full_attention_blocks must be from 0 to " + number(m.layers - 1) + ", got " +
                 number(block),
             "blocks are counted from 0");
  if (m.window > 0 && m.class_token)
    refuse(where + "/class_token",
           "class_token and window exclude each other: a class token is in no window",
           "use \"class_token\": false or \"window\": 0");
}

}  // namespace

void check_vision(const Refusal& refuse, const Module& m, const std::string& where) {
  check_stack(refuse, m, where);
  check_sizes(refuse, where,
              {{"image_size", m.image_size, 1 << 16},
               {"patch", m.patch, 1 << 16},
               {"channels", m.channels, 64}});
  check_encoder_heads(refuse, m, where);
  if (std::int64_t{m.image_size} / m.patch > 1024)
    refuse(where + "/image_size",
           "image_size / patch must be at most 1024, got " + number(m.image_size / m.patch),
           "use smaller images, or larger patches");
  check_windows(refuse, m, where);
  if (m.rotary && m.head_dim % 4 != 0)
    refuse(where + "/head_dim",
           "head_dim must be a multiple of 4 with rotary positions, got " + number(m.head_dim),
           "use a multiple of 4");
  if (m.alternating_axes && !m.rotary)
    refuse(where + "/alternating_axes",
           "alternating_axes needs rotary positions: it says how their frequencies are divided",
           "remove the key, or write \"rotary\": true");
  if (m.image_size % m.patch != 0)
    refuse(where + "/image_size",
           "image_size must be a multiple of patch, " + number(m.patch) + ", got " +
               number(m.image_size),
           "nearest: " +
               (m.image_size > m.patch ? number(m.image_size / m.patch * m.patch) + " or "
                                       : std::string()) +
               number((m.image_size / m.patch + 1) * m.patch));
}

void check_audio(const Refusal& refuse, const Module& m, const std::string& where) {
  check_stack(refuse, m, where);
  check_encoder_heads(refuse, m, where);
  check_sizes(refuse, where,
              {{"mel_bins", m.mel_bins, 1 << 16}, {"audio_tokens", m.audio_tokens, kMostWidth}});
  if (m.hidden % 2 != 0)
    refuse(where + "/hidden",
           "hidden must be even (pairs of sine and cosine), got " + number(m.hidden),
           "use an even width");
}

}  // namespace polyphony
