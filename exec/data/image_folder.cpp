#include "exec/data/image_folder.h"

#include <png.h>

#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony::exec {
namespace {

constexpr std::size_t kTrailer = 12;  // bytes of the IEND chunk at the end of every PNG file

// A cheap check for all files at the start; libpng checks the rest.
bool looks_whole(const std::string& png) {
  return png.size() > kTrailer && png.compare(1, 3, "PNG") == 0 &&
         png.compare(png.size() - 8, 4, "IEND") == 0;
}

}  // namespace

ImageFolder::ImageFolder(const std::string& folder, std::size_t count, int size)
    : folder_(folder),
      size_(size),
      decoded_(std::make_unique<std::once_flag[]>(count)),
      pixels_(count) {
  files_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    files_.push_back(read_whole(path(i), kRecords, kRestore));
    if (!looks_whole(files_.back()))
      throw InputError(path(i), "", "is not a complete PNG file", kRestore);
  }
  if (count > 0) image(0);  // reports a wrong size now, not during training
}

std::string ImageFolder::path(std::size_t number) const {
  return folder_ + "/" + std::to_string(number) + ".png";
}

void ImageFolder::decode(std::size_t number) const {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const std::string& file = files_[number];
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    png_image_free(&image);
    throw InputError(path(number), "", what, hint);
  };
  if (!png_image_begin_read_from_memory(&image, file.data(), file.size()))
    refuse(std::string("is a damaged PNG image: ") + image.message, kRestore);
  if (std::cmp_not_equal(image.width, size_) || std::cmp_not_equal(image.height, size_))
    refuse("has " + std::to_string(image.width) + " × " + std::to_string(image.height) +
               " pixels, but the model expects " + std::to_string(size_) + " × " +
               std::to_string(size_),
           "set model.vision.image_size to the images' size");
  image.format = PNG_FORMAT_RGB;
  std::vector<unsigned char> pixels(PNG_IMAGE_SIZE(image));
  if (!png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr))
    refuse(std::string("is a damaged PNG image: ") + image.message, kRestore);
  pixels_[number] = std::move(pixels);
}

torch::Tensor ImageFolder::image(std::size_t number) const {
  POLYPHONY_CHECK(number < files_.size(), "image " << number << " of " << files_.size());
  std::call_once(decoded_[number], [&] { decode(number); });
  const std::int64_t size = size_, plane = size * size;
  const unsigned char* from = pixels_[number].data();
  torch::Tensor image = torch::empty({3, size, size}, torch::kFloat32);
  float* to = image.data_ptr<float>();
  for (std::int64_t channel = 0; channel < 3; ++channel)
    for (std::int64_t i = 0; i < plane; ++i)
      to[channel * plane + i] = static_cast<float>(from[3 * i + channel]) * (2.0F / 255.0F) - 1.0F;
  return image;
}

}  // namespace polyphony::exec
