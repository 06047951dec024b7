#include "shared/datasets/sound_length.h"

#include <algorithm>

#include "shared/datasets/bytes.h"

namespace polyphony {
namespace {

std::optional<Seconds> of_wav(std::string_view file) {
  std::int64_t rate = 0;  // bytes per second
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::int64_t size = little_endian(file, at + 4, 4);
    if (file.substr(at, 4) == "fmt " && at + 20 <= file.size())
      rate = little_endian(file, at + 16, 4);
    if (file.substr(at, 4) == "data" && rate > 0)
      return Seconds(static_cast<double>(std::min<std::int64_t>(
                         size, static_cast<std::int64_t>(file.size() - at - 8))) /
                     static_cast<double>(rate));
    at += 8 + static_cast<std::size_t>(size + size % 2);
  }
  return {};
}

std::optional<Seconds> of_ogg(std::string_view file) {
  const std::size_t last = file.rfind("OggS");
  if (last + 14 > file.size() || file.size() < 58) return {};
  const auto granules = static_cast<double>(little_endian(file, last + 6, 8));
  const std::size_t packet = 27 + byte(file, 26);  // of the first page
  if (packet + 16 > file.size()) return {};
  const std::string_view head = file.substr(packet);
  if (head.starts_with("OpusHead"))
    return Seconds((granules - static_cast<double>(little_endian(head, 10, 2))) / 48000);
  if (head.starts_with("\x01vorbis")) {
    const auto rate = static_cast<double>(little_endian(head, 12, 4));
    if (rate > 0) return Seconds(granules / rate);
  }
  return {};
}

}  // namespace

std::optional<Seconds> sound_length(std::string_view file) {
  std::optional<Seconds> length;
  if (file.starts_with("RIFF") && file.size() > 8 && file.substr(8).starts_with("WAVE"))
    length = of_wav(file);
  if (file.starts_with("OggS")) length = of_ogg(file);
  if (length && length->count() <= 0) length.reset();
  return length;
}

bool is_sound(const std::string& name) { return ends_in(name, {".wav", ".ogg", ".oga", ".opus"}); }

}  // namespace polyphony
