#include "shared/files/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "shared/error.h"
#include "shared/files/descriptor.h"
#include "shared/fnv.h"

namespace polyphony {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;  // a multiple of the checksum's 8-byte words

std::uint64_t checksum_block(std::uint64_t state, const char* data, std::size_t size) {
  Fnv checksum(state);
  for (std::size_t i = 0; i < size; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + i, std::min<std::size_t>(8, size - i));
    checksum.add(word);
  }
  return checksum.value();
}

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw InputError(path, "", what + ": " + std::strerror(error),
                   full ? "free some disk space, or choose a folder on another disk"
                        : "choose a folder that every rank can write to");
}

}  // namespace

FileDigest digest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, "", "cannot be opened", "restore the file");
  FileDigest result{Bytes(0), Fnv().value()};
  std::string block(kBlock, '\0');
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(kBlock));
    result.checksum =
        checksum_block(result.checksum, block.data(), static_cast<std::size_t>(file.gcount()));
    result.size += Bytes(file.gcount());
  }
  return result;
}

SyncedFile::SyncedFile(const std::string& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, "cannot be created", errno);
  digest_.checksum = Fnv().value();
  block_.reserve(kBlock);
}

SyncedFile::~SyncedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SyncedFile::write(const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const std::size_t part = std::min(size, kBlock - block_.size());
    block_.append(bytes, part);
    bytes += part;
    size -= part;
    if (block_.size() == kBlock) flush();
  }
}

void SyncedFile::flush() {
  digest_.checksum = checksum_block(digest_.checksum, block_.data(), block_.size());
  digest_.size += Bytes(static_cast<std::int64_t>(block_.size()));
  if (const int error = write_all(descriptor_, block_.data(), block_.size()))
    fail(path_, "cannot be written", error);
  block_.clear();
}

FileDigest SyncedFile::finish() {
  flush();
  if (::fsync(descriptor_) != 0) fail(path_, "cannot be written", errno);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail(path_, "cannot be written", errno);
  return digest_;
}

namespace {

void sync_path(const std::string& path, int flags) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (file < 0) fail(path, "cannot be opened", errno);
  // Some network file systems refuse to sync a folder (EINVAL) and write it through at once.
  if (::fsync(file) != 0 && errno != EINVAL) fail(path, "cannot be written", errno);
}

}  // namespace

void sync_file(const std::string& path) { sync_path(path, 0); }
void sync_folder(const std::string& path) { sync_path(path, O_DIRECTORY); }

}  // namespace polyphony
