#include "exec/data/decode_image.h"

#include <png.h>
#include <turbojpeg.h>
#include <webp/demux.h>

#include <csetjmp>
#include <cstring>
#include <memory>

#include "shared/error.h"

namespace polyphony::exec {
namespace {

constexpr const char* kReplace = "replace the file, or remove its sample";

[[noreturn]] void refuse_image(const std::string& name, const std::string& what) {
  throw InputError(name, "", what, kReplace);
}

// Returns a black image.
DecodedImage empty_image(std::int64_t width, std::int64_t height, const std::string& name) {
  if (width * height > kMostPixels)
    throw InputError(name, "",
                     "has " + std::to_string(width) + " × " + std::to_string(height) +
                         " pixels, more than " + std::to_string(kMostPixels),
                     "make the image smaller");
  return {width, height, std::vector<unsigned char>(static_cast<std::size_t>(3 * width * height)),
          name};
}

// What libpng reads from, and its first error.
struct PngSource {
  std::string_view bytes;
  std::string error;
};

void read_png_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto& source = *static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source.bytes.size()) png_error(png, "the file ends too early");
  std::memcpy(to, source.bytes.data(), count);
  source.bytes.remove_prefix(count);
}
[[noreturn]] void keep_png_error(png_structp png, png_const_charp what) {
  static_cast<PngSource*>(png_get_error_ptr(png))->error = what;
  png_longjmp(png, 1);
}
void ignore_png_warning(png_structp, png_const_charp) {}

struct PngReader {
  explicit PngReader(PngSource& source)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, keep_png_error,
                                   ignore_png_warning)) {
    if (png) info = png_create_info_struct(png);
    POLYPHONY_CHECK(info, "libpng has no memory");
    png_set_read_fn(png, &source, read_png_bytes);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  png_structp png;
  png_infop info = nullptr;
};

// libpng leaves these functions by longjmp() if there is an error, so they own no object.
bool read_png_header(const PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_read_info(reader.png, reader.info);
  png_set_expand(reader.png);  // palettes, and gray of fewer than 8 bits
  png_set_strip_16(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_gray_to_rgb(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}
bool read_png_rows(const PngReader& reader, unsigned char** rows) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

DecodedImage decode_png(std::string_view bytes, const std::string& name) {
  PngSource source{bytes, {}};
  const PngReader reader(source);
  if (!read_png_header(reader)) refuse_image(name, "is a damaged PNG image: " + source.error);
  DecodedImage image = empty_image(png_get_image_width(reader.png, reader.info),
                                   png_get_image_height(reader.png, reader.info), name);
  const auto row_bytes = static_cast<std::size_t>(3 * image.width);
  POLYPHONY_CHECK(png_get_rowbytes(reader.png, reader.info) == row_bytes, name);
  std::vector<unsigned char*> rows;
  for (std::size_t at = 0; at < image.rgb.size(); at += row_bytes)
    rows.push_back(image.rgb.data() + at);
  if (!read_png_rows(reader, rows.data()))
    refuse_image(name, "is a damaged PNG image: " + source.error);
  return image;
}

// Returns true if an end-of-image marker follows the start of the last scan. No marker has these
// bytes inside a scan, where FF is followed by 00 or by a restart marker (ITU-T T.81, B.1.1.5).
bool reaches_its_end(std::string_view jpeg) {
  const auto end = jpeg.rfind("\xFF\xD9"), scan = jpeg.rfind("\xFF\xDA");
  return end != jpeg.npos && scan != jpeg.npos && end > scan;
}

// Fills `image` from CMYK. Adobe stores complements, which PIL and this function assume always:
// red = black · (1 − (255 − cyan) / 255) of the stored values, in PIL's rounding (MULDIV255).
void set_from_cmyk(DecodedImage& image, const std::vector<unsigned char>& cmyk) {
  for (std::size_t i = 0; i < image.rgb.size(); ++i) {
    const std::size_t pixel = i / 3 * 4;
    const int black = cmyk[pixel + 3];
    const int product = (255 - cmyk[pixel + i % 3]) * black + 128;
    image.rgb[i] = static_cast<unsigned char>(black - ((product >> 8) + product) / 256);
  }
}

DecodedImage decode_jpeg(std::string_view bytes, const std::string& name) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  POLYPHONY_CHECK(decoder, "libturbojpeg has no memory");
  const auto damaged = [&](const std::string& why) {
    refuse_image(name, "is a damaged JPEG image" + why);
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colors = -1;
  // Of an unusual subsampling this returns an error, but sets the other values all the same.
  tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colors);
  if (width < 1 || height < 1 || colors < 0)
    damaged(std::string(": ") + tjGetErrorStr2(decoder.get()));
  DecodedImage image = empty_image(width, height, name);
  const bool four = colors == TJCS_CMYK || colors == TJCS_YCCK;
  std::vector<unsigned char> cmyk(four ? image.rgb.size() / 3 * 4 : 0);
  if (tjDecompress2(decoder.get(), data, bytes.size(), four ? cmyk.data() : image.rgb.data(), width,
                    0, height, four ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
    if (tjGetErrorCode(decoder.get()) != TJERR_WARNING)
      damaged(std::string(": ") + tjGetErrorStr2(decoder.get()));
    if (!reaches_its_end(bytes)) damaged(": the file ends too early");
  }
  if (four) set_from_cmyk(image, cmyk);
  return image;
}

// By libwebp's animation decoder, as PIL does, which decodes still images, too.
DecodedImage decode_webp(std::string_view bytes, const std::string& name) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data.bytes, data.size, &features) != VP8_STATUS_OK)
    refuse_image(name, "is a damaged WebP image");
  DecodedImage image = empty_image(features.width, features.height, name);
  WebPAnimDecoderOptions options;
  POLYPHONY_CHECK(WebPAnimDecoderOptionsInit(&options), "libwebpdemux has another version");
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, &options), WebPAnimDecoderDelete);
  std::uint8_t* rgba = nullptr;
  int milliseconds = 0;
  if (!decoder || !WebPAnimDecoderGetNext(decoder.get(), &rgba, &milliseconds))
    refuse_image(name, "is a damaged or truncated WebP image");
  for (std::size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = rgba[i / 3 * 4 + i % 3];
  return image;
}

}  // namespace

DecodedImage decode_image(std::string_view bytes, const std::string& name) {
  // Signatures: PNG, third edition, §5.2; ITU-T T.81, B.1.1.3 (start of image); RFC 9649, §2.3.
  if (bytes.starts_with("\x89PNG\r\n\x1A\n")) return decode_png(bytes, name);
  if (bytes.starts_with("\xFF\xD8\xFF")) return decode_jpeg(bytes, name);
  if (bytes.starts_with("RIFF") && bytes.size() > 12 && bytes.substr(8, 4) == "WEBP")
    return decode_webp(bytes, name);
  throw InputError(name, "", "is no PNG, JPEG or WebP image",
                   "convert it, for example to PNG, or remove its sample");
}

}  // namespace polyphony::exec
