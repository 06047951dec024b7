// Decodes a PNG, JPEG or WebP file to 8-bit RGB with the libraries that PIL uses (libpng,
// libjpeg-turbo, libwebp). The result is that of PIL's Image.open(file).convert("RGB"):
//   Alpha is dropped, not blended. Palettes and gray become RGB. CMYK becomes RGB by PIL's formula.
//   Gamma and color profiles are ignored. An EXIF orientation is not applied. Of an animation the
//   first frame counts.
//   JPEG: accurate integer DCT and smooth chroma upsampling, the defaults of libjpeg.
//   Of 16-bit PNG the high byte counts.
//
// Differences from PIL (12.3): 16-bit gray PNG, whose values PIL limits to 255 instead of dividing
// them; PNG files that end before their last chunk, which PIL accepts and this function refuses.
// Corrupt JPEG data before the end of the file is accepted, as PIL does. GIF and other formats are
// refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polyphony::exec {

struct DecodedImage {
  std::int64_t width = 0, height = 0;
  std::vector<unsigned char> rgb;  // rows of RGB
  std::string name{};              // for errors
};

// Images with more pixels are refused, as PIL does: twice Image.MAX_IMAGE_PIXELS, which is a
// quarter of a GiB of RGB pixels (PIL's DecompressionBombError).
inline constexpr std::int64_t kMostPixels = 178'956'970;

// Returns the image in `bytes`, whose format follows from its first bytes. Throws InputError naming
// `name` if the format is unknown, the image is damaged or truncated, or has more than kMostPixels.
// Thread-safe.
DecodedImage decode_image(std::string_view bytes, const std::string& name);

}  // namespace polyphony::exec
