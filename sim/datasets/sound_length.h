// How long a sound lasts, from its file: WAV and Ogg (Vorbis, Opus).
// Sources: RIFF WAVE (its fmt and data chunks); Ogg, RFC 3533, §6 (granule position of the last page); Vorbis I
// §4.2.2; Opus in Ogg, RFC 7845, §4 (always 48 kHz) and §5.1 (pre-skip).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shared/units.h"

namespace polyphony::sim {

// Of a whole file. Nothing: none of these formats, or damaged.
std::optional<Seconds> sound_length(std::string_view file);

bool is_sound(const std::string& name);

}  // namespace polyphony::sim
