// The duration of an audio clip, from its file: WAV and Ogg (Vorbis, Opus).
// Sources: RIFF WAVE (its fmt and data chunks); Ogg, RFC 3533, §6 (granule position of the last
// page); Vorbis I §4.2.2; Opus in Ogg, RFC 7845, §4 (always 48 kHz) and §5.1 (pre-skip).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shared/units.h"

namespace polyphony {

// Takes a whole file. Returns nothing if the format is none of these, or the file is damaged.
std::optional<Seconds> sound_length(std::string_view file);

// Decides by the file name extension, ignoring case.
bool is_sound(const std::string& name);

}  // namespace polyphony
