#include "shared/files/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "shared/error.h"
#include "shared/files/whole.h"
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

std::string read_bytes(const std::string& path, const std::string& hint) {
  return read_whole(path, kRecords, hint);
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
  for (std::size_t done = 0; done < block_.size();) {
    const ::ssize_t written = ::write(descriptor_, block_.data() + done, block_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "cannot be written", errno);
    done += static_cast<std::size_t>(written);
  }
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
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (descriptor < 0) fail(path, "cannot be opened", errno);
  // Some network file systems refuse to sync a folder (EINVAL) and write it through at once.
  const bool failed = ::fsync(descriptor) != 0 && errno != EINVAL;
  const int error = errno;
  ::close(descriptor);
  if (failed) fail(path, "cannot be written", error);
}

}  // namespace

void sync_file(const std::string& path) { sync_path(path, 0); }
void sync_folder(const std::string& path) { sync_path(path, O_DIRECTORY); }

}  // namespace polyphony
