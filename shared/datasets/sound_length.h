// The duration of an audio clip, from the ends of its file: WAV, FLAC and Ogg (Vorbis, Opus).
// Nothing is decoded.
// Sources: RIFF WAVE (its fmt and data chunks); FLAC, RFC 9639, §8.2 (the first metadata block);
// Ogg, RFC 3533, §6 (granule position of the last page); Vorbis I §4.2.2; Opus in Ogg, RFC 7845, §4
// (always 48 kHz) and §5.1 (pre-skip).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shared/units.h"

namespace polyphony {

// The first and last bytes of a file that sound_length() needs at most. The data of a WAV file must
// begin in the first, an Ogg file's last page (at most 65,307 bytes) in the last.
inline constexpr std::size_t kSoundHead = std::size_t{1} << 18, kSoundTail = std::size_t{1} << 16;

// Returns nothing if the format is none of these, the file is damaged, or a FLAC file does not
// state its length. `bytes`: size of the file. A truncated WAV file has the length of what exists.
std::optional<Seconds> sound_length(std::string_view head, std::string_view tail,
                                    std::int64_t bytes);
// The same for a whole file.
inline std::optional<Seconds> sound_length(std::string_view file) {
  return sound_length(file, file, static_cast<std::int64_t>(file.size()));
}

// Decides by the file name extension, ignoring case.
bool is_sound(const std::string& name);

}  // namespace polyphony
