#include "shared/datasets/picture_size.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "shared/datasets/bytes.h"

namespace polyphony {
namespace {

std::optional<PictureSize> of_jpeg(std::string_view head) {
  std::size_t at = 2;
  while (at + 9 <= head.size()) {
    if (byte(head, at) != 0xFF) return {};
    const unsigned marker = byte(head, at + 1);
    if (marker == 0xFF) {  // fill
      ++at;
      continue;
    }
    // Frame headers are C0 to CF except tables (C4), extensions (C8) and conditioning (CC).
    if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC)
      return PictureSize{big_endian(head, at + 7, 2), big_endian(head, at + 5, 2)};
    const bool alone = marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7);
    at += 2 + (alone ? 0 : static_cast<std::size_t>(big_endian(head, at + 2, 2)));
  }
  return {};
}

std::optional<PictureSize> of_webp(std::string_view head) {
  if (head.size() < 30) return {};
  const std::string_view kind = head.substr(12, 4);
  if (kind == "VP8X")
    return PictureSize{little_endian(head, 24, 3) + 1, little_endian(head, 27, 3) + 1};
  if (kind == "VP8L") {  // two 14-bit fields
    const std::int64_t bits = little_endian(head, 21, 4);
    return PictureSize{(bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1};
  }
  if (kind == "VP8 ")  // the upper two bits are a scale
    return PictureSize{little_endian(head, 26, 2) & 0x3FFF, little_endian(head, 28, 2) & 0x3FFF};
  return {};
}

std::optional<PictureSize> any_size(std::string_view head) {
  if (head.starts_with("\x89PNG\r\n\x1A\n") && head.size() >= 24)
    return PictureSize{big_endian(head, 16, 4), big_endian(head, 20, 4)};
  if (head.starts_with("\xFF\xD8")) return of_jpeg(head);
  if ((head.starts_with("GIF87a") || head.starts_with("GIF89a")) && head.size() >= 10)
    return PictureSize{little_endian(head, 6, 2), little_endian(head, 8, 2), false};
  if (head.starts_with("RIFF") && head.size() > 8 && head.substr(8).starts_with("WEBP"))
    return of_webp(head);
  if (head.starts_with("BM") && head.size() >= 26)
    return PictureSize{little_endian(head, 18, 4), little_endian(head, 22, 4), false};
  return {};
}

}  // namespace

std::optional<PictureSize> picture_size(std::string_view head) {
  // Longer sides mean a damaged header: JPEG and GIF cannot store them, training does not use them.
  constexpr std::int64_t kMostSide = 1 << 20;
  std::optional<PictureSize> size = any_size(head);
  if (size &&
      (size->width < 1 || size->height < 1 || size->width > kMostSide || size->height > kMostSide))
    size.reset();
  return size;
}

bool is_picture(const std::string& name) {
  return ends_in(name, {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"});
}

}  // namespace polyphony
