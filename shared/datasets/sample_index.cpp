#include "shared/datasets/sample_index.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "shared/datasets/sample_records.h"
#include "shared/error.h"

namespace polyphony {
namespace {

constexpr std::uint64_t kMagic = 0x31584449594c4f50ull;  // "POLYIDX1"
enum Field : std::size_t { kMagicField, kKeyBytes, kRecordBytes, kTailBytes, kChecksum, kFields };
using Header = std::array<std::uint64_t, kFields>;

std::uint64_t remaining(std::uint64_t size) { return aligned(size) - size; }

std::string_view as_bytes(const Header& header, std::size_t fields = kFields) {
  return {reinterpret_cast<const char*>(header.data()), fields * sizeof(header[0])};
}

// Adds the fields that the checksum covers: all but itself.
void add_header(const Header& header, IndexChecksum& checksum) {
  checksum.add(as_bytes(header, kChecksum));
}

}  // namespace

// As FNV-1a (shared/fnv.h), a word at a time; the shift makes high bits matter to low ones. Each
// step is one to one, so that a change of one word always changes the value.
void IndexChecksum::add(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kRecordAlignment) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(kRecordAlignment, bytes.size() - at));
    state_ = (state_ ^ word) * 0x100000001b3ull;
    state_ ^= state_ >> 32;
  }
}

std::optional<SampleIndex> open_index(const std::string& path, const std::string& key) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return {};
  SampleIndex index;
  try {
    index.file = std::make_unique<MappedFile>(path);
  } catch (const InputError&) {
    return {};
  }
  const std::string_view bytes = index.file->bytes();
  Header header{};
  if (bytes.size() < sizeof header) return {};
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const std::uint64_t space = bytes.size() - sizeof header;
  if (header[kMagicField] != kMagic || header[kKeyBytes] != key.size() ||
      header[kRecordBytes] > space || header[kTailBytes] > space ||
      aligned(key.size()) + header[kRecordBytes] + aligned(header[kTailBytes]) != space ||
      header[kRecordBytes] % kRecordAlignment != 0)
    return {};
  if (bytes.substr(sizeof header, key.size()) != key) return {};
  IndexChecksum content;
  for (std::size_t at = sizeof header; at < bytes.size(); at += kIndexPiece) {
    content.add(bytes.substr(at, kIndexPiece));
    index.file->let_go(at, kIndexPiece);
  }
  add_header(header, content);
  if (content.value() != header[kChecksum]) return {};
  const std::size_t records = sizeof header + aligned(key.size());
  index.records = bytes.substr(records, header[kRecordBytes]);
  index.tail = bytes.substr(records + header[kRecordBytes], header[kTailBytes]);
  return index;
}

std::unique_ptr<IndexWriter> IndexWriter::create(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  constexpr int kMode = 0666;  // less what the user's mask takes away
  const int lock = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (lock < 0) return nullptr;
  std::unique_ptr<IndexWriter> writer(new IndexWriter(path, lock));
  while (::flock(lock, LOCK_EX) != 0)
    if (errno != EINTR) return nullptr;
  return writer;
}

IndexWriter::IndexWriter(std::string path, int lock)
    : path_(std::move(path)), partial_(path_ + ".partial"), lock_(lock) {}

IndexWriter::~IndexWriter() {
  if (out_.is_open()) ::unlink(partial_.c_str());
}

void IndexWriter::write(std::string_view bytes) {
  constexpr std::array<char, kRecordAlignment> kZeros{};
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out_.write(kZeros.data(), static_cast<std::streamsize>(remaining(bytes.size())));
}

void IndexWriter::begin(const std::string& key) {
  out_.open(partial_, std::ios::binary | std::ios::trunc);
  write(as_bytes(Header{}));  // until its numbers are known
  write(key);
  checksum_.add(key);
  key_bytes_ = key.size();
}

void IndexWriter::add(std::string_view records) {
  write(records);
  checksum_.add(records);
  record_bytes_ += records.size();
}

// The file is not synced: the checksum finds what a crash of the machine has not written.
bool IndexWriter::finish(std::string_view tail) {
  write(tail);
  checksum_.add(tail);
  Header header{kMagic, key_bytes_, record_bytes_, tail.size(), 0};
  add_header(header, checksum_);
  header[kChecksum] = checksum_.value();
  out_.seekp(0);
  write(as_bytes(header));
  out_.close();
  if (out_ && ::rename(partial_.c_str(), path_.c_str()) == 0) return true;
  ::unlink(partial_.c_str());
  return false;
}

}  // namespace polyphony
