#include "shared/datasets/sound_length.h"

#include <algorithm>

#include "shared/datasets/bytes.h"

namespace polyphony {
namespace {

std::optional<Seconds> of_wav(std::string_view head, std::int64_t bytes) {
  std::int64_t rate = 0;  // bytes per second
  for (std::size_t at = 12; at + 8 <= head.size();) {
    const std::int64_t size = little_endian(head, at + 4, 4);
    if (head.substr(at, 4) == "fmt " && at + 20 <= head.size())
      rate = little_endian(head, at + 16, 4);
    if (head.substr(at, 4) == "data" && rate > 0)
      return Seconds(
          static_cast<double>(std::min(size, bytes - static_cast<std::int64_t>(at) - 8)) /
          static_cast<double>(rate));
    at += 8 + static_cast<std::size_t>(size + size % 2);
  }
  return {};
}

// After the signature and the block's header: 10 bytes of block and frame sizes, then 20 bits of
// sample rate, 3 of channels, 5 of bits per sample and 36 of samples.
std::optional<Seconds> of_flac(std::string_view head) {
  constexpr std::size_t kRate = 18;
  if (head.size() < kRate + 8 || byte(head, 4) % 128 != 0) return {};
  const std::int64_t rate = big_endian(head, kRate, 3) >> 4;
  const std::int64_t samples = big_endian(head, kRate + 3, 5) & ((std::int64_t{1} << 36) - 1);
  if (rate < 1) return {};
  return Seconds(static_cast<double>(samples) / static_cast<double>(rate));
}

std::optional<Seconds> of_ogg(std::string_view head, std::string_view tail) {
  const std::size_t last = tail.rfind("OggS");
  if (last == tail.npos || last + 14 > tail.size() || head.size() < 58) return {};
  const auto granules = static_cast<double>(little_endian(tail, last + 6, 8));
  const std::size_t packet = 27 + byte(head, 26);  // of the first page
  if (packet + 16 > head.size()) return {};
  const std::string_view begin = head.substr(packet);
  if (begin.starts_with("OpusHead"))
    return Seconds((granules - static_cast<double>(little_endian(begin, 10, 2))) / 48000);
  if (begin.starts_with("\x01vorbis")) {
    const auto rate = static_cast<double>(little_endian(begin, 12, 4));
    if (rate > 0) return Seconds(granules / rate);
  }
  return {};
}

}  // namespace

std::optional<Seconds> sound_length(std::string_view head, std::string_view tail,
                                    std::int64_t bytes) {
  std::optional<Seconds> length;
  if (head.starts_with("RIFF") && head.size() > 8 && head.substr(8).starts_with("WAVE"))
    length = of_wav(head, bytes);
  if (head.starts_with("fLaC")) length = of_flac(head);
  if (head.starts_with("OggS")) length = of_ogg(head, tail);
  if (length && length->count() <= 0) length.reset();
  return length;
}

bool is_sound(const std::string& name) {
  return ends_in(name, {".wav", ".flac", ".ogg", ".oga", ".opus"});
}

}  // namespace polyphony
