#include "shared/error.h"
#include "shared/files/pieces.h"
#include "shared/files/whole.h"
#include "shared/text/figure_text.h"

namespace polyphony {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;

[[noreturn]] void too_large(const std::string& path, const ReadLimits& limits) {
  throw InputError(path, "",
                   "is larger than " + bytes_text(limits.most) + ", the limit for such a file",
                   "check that it is the right file, or shorten it");
}

}  // namespace

std::string read_whole(const std::string& path, const ReadLimits& limits, const std::string& hint) {
  const auto most = static_cast<std::size_t>(limits.most.value);
  FilePieces file(path, hint, limits.silence);
  const Bytes size = file.size().value_or(Bytes{});
  if (size > limits.most) too_large(path, limits);
  std::string text;
  text.reserve(static_cast<std::size_t>(size.value));
  std::string block(kBlock, '\0');
  while (const std::size_t count = file.read(block.data(), block.size())) {
    if (text.size() + count > most) too_large(path, limits);
    text.append(block, 0, count);
  }
  return text;
}

std::string read_file(const std::string& path) { return read_whole(path, kSettings); }

std::string read_records(const std::string& path) { return read_whole(path, kRecords); }

}  // namespace polyphony
