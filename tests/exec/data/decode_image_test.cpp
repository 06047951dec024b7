// The images in tests/exec/data/images and PIL's pixels of them (NAME.rgb) were written by
// `scripts/oracle_images --fixtures tests/exec/data/images`. All have 24 × 20 pixels.
#include "exec/data/decode_image.h"

#include <doctest/doctest.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec {
namespace {

using testing::refusal;
using testing::slurp;

const std::string kFolder = "tests/exec/data/images/";
const std::vector<std::string> kPng{"rgb.png", "rgba.png", "palette.png", "gray.png", "bits.png"};
const std::vector<std::string> kJpeg{"baseline.jpg", "progressive.jpg", "gray.jpg", "cmyk.jpg"};
const std::vector<std::string> kWebp{"lossy.webp", "alpha.webp", "animated.webp"};

// The largest difference from PIL's pixels.
int difference(const std::string& name) {
  const DecodedImage image = decode_image(slurp(kFolder + name), name);
  const std::string expected = slurp(kFolder + name + ".rgb");
  REQUIRE(image.width == 24);
  REQUIRE(image.height == 20);
  REQUIRE(image.rgb.size() == expected.size());
  int largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(image.rgb[i] - static_cast<unsigned char>(expected[i])));
  return largest;
}

std::string refused(const std::string& bytes) {
  return refusal([&] { decode_image(bytes, "a.bin"); });
}

}  // namespace

TEST_SUITE("images") {
  TEST_CASE("pixels of PNG files equal PIL's, without alpha") {
    for (const std::string& name : kPng) {
      CAPTURE(name);
      CHECK(difference(name) == 0);
    }
    // The transparent rectangle of rgba.png keeps its color.
    const DecodedImage image = decode_image(slurp(kFolder + "rgba.png"), "");
    const auto at = static_cast<std::ptrdiff_t>(3 * (4 * 24 + 3));
    CHECK(std::equal(image.rgb.begin() + at, image.rgb.begin() + at + 3,
                     std::array<unsigned char, 3>{250, 20, 90}.begin()));
  }

  TEST_CASE("pixels of JPEG and WebP files differ from PIL's by at most 1") {
    for (const std::string& name : kJpeg) {
      CAPTURE(name);
      CHECK(difference(name) <= 1);
    }
    for (const std::string& name : kWebp) {
      CAPTURE(name);
      CHECK(difference(name) <= 1);
    }
  }

  TEST_CASE("of 16-bit PNG the high byte counts, and gamma is ignored") {
    // libpng marks 16-bit files that it writes as linear (gAMA 1.0).
    const std::array<png_uint_16, 6> values{0x0000, 0x12FF, 0x1300, 0x80FF, 0xFEFF, 0xFFFF};
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    header.width = 2, header.height = 1;
    header.format = PNG_FORMAT_LINEAR_RGB;
    std::string png(1000, ' ');
    png_alloc_size_t size = png.size();
    REQUIRE(png_image_write_to_memory(&header, png.data(), &size, 0, values.data(), 0, nullptr) !=
            0);
    png.resize(size);
    REQUIRE(png.find("gAMA") != std::string::npos);
    CHECK(decode_image(png, "").rgb ==
          std::vector<unsigned char>{0x00, 0x12, 0x13, 0x80, 0xFE, 0xFF});
  }

  TEST_CASE("every truncated file is refused by name") {
    std::vector<std::string> names = kPng;
    names.insert(names.end(), kJpeg.begin(), kJpeg.end());
    names.insert(names.end(), kWebp.begin(), kWebp.end());
    for (const std::string& name : names) {
      const std::string whole = slurp(kFolder + name);
      REQUIRE(refused(whole).empty());
      for (std::size_t length = 0; length < whole.size(); ++length) {
        INFO(name << " cut to " << length << " of " << whole.size());
        CHECK(refused(whole.substr(0, length)).starts_with("a.bin: is "));
      }
    }
    const std::string jpeg = slurp(kFolder + "baseline.jpg");
    CHECK(refused(jpeg.substr(0, jpeg.size() - 2)) ==
          "a.bin: is a damaged JPEG image: the file ends too early (replace the file, or remove "
          "its sample)");
    // What follows the end of the image does not count.
    CHECK(refused(jpeg + "more").empty());
  }

  TEST_CASE("damaged, huge and unknown files are refused by name") {
    std::string png = slurp(kFolder + "rgb.png");
    png[png.size() - 20] ^= 1;  // 12 bytes of trailer and 4 of checksum follow the pixels
    CHECK(refused(png).starts_with("a.bin: is a damaged PNG image: "));
    // The frame header: FFC0, 2 bytes of length, 1 of precision, 2 of height, 2 of width.
    std::string jpeg = slurp(kFolder + "baseline.jpg");
    const std::size_t frame = jpeg.find("\xFF\xC0");
    REQUIRE(frame != std::string::npos);
    jpeg.replace(frame + 5, 4, "\x7F\xFF\x7F\xFF");
    CHECK(refused(jpeg) ==
          "a.bin: has 32767 × 32767 pixels, more than 178956970 (make the image smaller)");
    CHECK(refused("GIF89a") ==
          "a.bin: is no PNG, JPEG or WebP image (convert it, for example to PNG, or remove its "
          "sample)");
  }
}

}  // namespace polyphony::exec
