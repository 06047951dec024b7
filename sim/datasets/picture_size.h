// Width and height of a picture from the first bytes of its file: PNG, JPEG, GIF, WebP and BMP. Nothing is
// decoded.
// Sources: the formats' specifications (PNG, third edition, §11.2.2; JPEG, ITU-T T.81, B.2.2; GIF89a, 18;
// WebP container, RFC 9649, §2.5 to 2.7; BMP, BITMAPINFOHEADER).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polyphony::sim {

struct PictureSize {
  std::int64_t width = 0, height = 0;
  bool operator==(const PictureSize&) const = default;
};

// As much of a file as picture_size() wants: the frame header of a JPEG comes behind its thumbnail and profile.
inline constexpr std::size_t kPictureHead = std::size_t{1} << 20;

// Nothing: none of these formats, damaged, or cut off before it says.
std::optional<PictureSize> picture_size(std::string_view head);

// By the ending of its name, upper and lower case alike.
bool is_picture(const std::string& name);

}  // namespace polyphony::sim
