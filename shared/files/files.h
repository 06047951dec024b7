// Files written to outlive a crash: checksummed on the way and synced to the disk before they count. Errors: InputError that names the file, the system's reason and what to
// do (a full disk among them).
#pragma once

#include <cstdint>
#include <string>

#include "shared/units.h"

namespace polyphony {

// FNV-1a over the file's little-endian 64-bit words, the last one filled up with zeros. Every step
// maps states one to one, so damage inside one word always shows. Against accidents, not attacks.
// Source: Fowler, Noll and Vo (draft-eastlake-fnv), with words for bytes: eight times as fast.
struct FileDigest {
  Bytes size{};
  std::uint64_t checksum = 0;
  bool operator==(const FileDigest&) const = default;
};
FileDigest digest(const std::string& path);

class SyncedFile {
 public:
  explicit SyncedFile(const std::string& path);  // created, or emptied
  ~SyncedFile();                                 // without finish(): closed, whatever is in it
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;

  void write(const void* data, std::size_t size);
  // All is on the disk when it returns.
  FileDigest finish();

 private:
  void flush();

  std::string path_;
  int descriptor_ = -1;
  std::string block_;  // not yet written; whole blocks keep the checksum's words aligned
  FileDigest digest_;
};

// What was written to the file is on the disk when it returns.
void sync_file(const std::string& path);
// What was created, renamed or removed in the folder is on the disk when it returns.
void sync_folder(const std::string& path);

}  // namespace polyphony
