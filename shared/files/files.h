// Files that survive a crash: checksummed while they are written, and synced to the disk before
// they count as written. Errors: InputError that names the file, the system's reason (e.g. a full
// disk) and what to do.
#pragma once

#include <cstdint>
#include <string>

#include "shared/units.h"

namespace polyphony {

// FNV-1a over the file's little-endian 64-bit words, the last one padded with zeros. Each step maps
// states one to one, so damage within a single word is always detected. Protects against accidents,
// not attacks. Source: Fowler, Noll and Vo (draft-eastlake-fnv), with words in place of bytes,
// which is eight times as fast.
struct FileDigest {
  Bytes size{};
  std::uint64_t checksum = 0;
  bool operator==(const FileDigest&) const = default;
};
FileDigest digest(const std::string& path);

class SyncedFile {
 public:
  explicit SyncedFile(const std::string& path);  // creates the file, or empties it
  ~SyncedFile();                                 // closes the file, even if finish() was not called
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;

  void write(const void* data, std::size_t size);
  // Returns after all data is on the disk.
  FileDigest finish();

 private:
  void flush();

  std::string path_;
  int descriptor_ = -1;
  std::string block_;  // not yet written; whole blocks keep the checksum's words aligned
  FileDigest digest_;
};

// Returns after everything written to the file is on the disk.
void sync_file(const std::string& path);
// Returns after all creations, renames and removals in the folder are on the disk.
void sync_folder(const std::string& path);

}  // namespace polyphony
