// Width and height of an image, from the first bytes of its file: PNG, JPEG, GIF, WebP and BMP.
// Nothing is decoded.
// Sources: the formats' specifications (PNG, third edition, §11.2.2; JPEG, ITU-T T.81, B.2.2;
// GIF89a, 18; WebP container, RFC 9649, §2.5 to 2.7; BMP, BITMAPINFOHEADER).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polyphony {

struct PictureSize {
  std::int64_t width = 0, height = 0;
  bool decoded = true;  // whether training decodes the format: PNG, JPEG and WebP
  bool operator==(const PictureSize&) const = default;
};

// The bytes of a file that picture_size() needs at most. In a JPEG the frame header comes after the
// thumbnail and the color profile.
inline constexpr std::size_t kPictureHead = std::size_t{1} << 20;

// Returns nothing if the format is none of these, or the file is damaged or truncated before its
// size.
std::optional<PictureSize> picture_size(std::string_view head);

// Decides by the file name extension, ignoring case.
bool is_picture(const std::string& name);

}  // namespace polyphony
