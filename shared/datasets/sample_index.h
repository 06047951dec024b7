// The index of a data set: a file with the records of its samples (sample_records.h), which one
// process writes and all others map, so that not every rank reads every shard.
//   A file, each part filled with zeros to a multiple of 8 bytes:
//     magic number, bytes of the key, of the records and of the tail, checksum (uint64 each)
//     key: a text of everything that the samples depend on
//     records
//     tail: a text
// A file is used if it is whole by its checksum and its key is the one that is asked for; otherwise
// it is replaced. It appears under its name when it is complete (a partial file is renamed), and a
// process that reads the old one keeps it.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "shared/files/descriptor.h"
#include "shared/files/mapped_file.h"

namespace polyphony {

// Of an index that is checked or read, so many bytes are in memory at a time.
inline constexpr std::size_t kIndexPiece = std::size_t{4} << 20;

class IndexChecksum {
 public:
  // Adds bytes, filled with zeros to a multiple of 8.
  void add(std::string_view bytes);
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ull;  // FNV-1a's first state
};

struct SampleIndex {
  std::unique_ptr<const MappedFile> file;
  std::string_view records, tail;  // in the file
};
// Returns the index at `path`, or nothing if it is missing, damaged or of another key. Of a checked
// part no page stays in memory on this process's account.
std::optional<SampleIndex> open_index(const std::string& path, const std::string& key);

// Writes an index. Only one process at a time has a writer for a path.
class IndexWriter {
 public:
  // Waits until no other process has a writer for `path`. Returns null if there can be none, for
  // example because the folder cannot be written. Creates the folder.
  static std::unique_ptr<IndexWriter> create(const std::string& path);
  // Removes what has not been finished.
  ~IndexWriter();

  void begin(const std::string& key);
  // Adds records, whose size must be a multiple of 8.
  void add(std::string_view records);
  // Puts the file in its place. Returns false if it could not be written.
  bool finish(std::string_view tail);

 private:
  IndexWriter(std::string path, int lock);
  void write(std::string_view bytes);  // and zeros up to a multiple of 8

  std::string path_, partial_;
  Descriptor lock_;
  std::ofstream out_;
  IndexChecksum checksum_;
  std::uint64_t key_bytes_ = 0, record_bytes_ = 0;
};

}  // namespace polyphony
