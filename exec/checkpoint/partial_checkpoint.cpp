#include "exec/checkpoint/partial_checkpoint.h"

#include <fcntl.h>
#include <stdio.h>

#include <filesystem>
#include <system_error>

#include "shared/error.h"
#include "shared/files/files.h"
#include "shared/files/run_paths.h"

namespace polyphony::exec {

namespace fs = std::filesystem;

PartialCheckpoint::PartialCheckpoint(const std::string& folder, std::int64_t step)
    : folder_(folder), whole_(step_folder(folder, step)), path_(whole_ + kPartialSuffix) {
  std::error_code error;
  fs::create_directories(folder, error);
  for (const std::string& stale : partial_checkpoints(folder)) remove_checkpoint(stale);
  if (!fs::create_directory(path_, error) && error)
    throw InputError(path_, "", "cannot be created: " + error.message(),
                     "choose a writable folder");
}

PartialCheckpoint::~PartialCheckpoint() {
  if (!published_) remove_checkpoint(path_);
}

void PartialCheckpoint::publish() {
  sync_folder(path_);
  std::error_code error;
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, whole_.c_str(), RENAME_EXCHANGE) != 0) {
    remove_checkpoint(whole_);  // there is no old one, or the file system cannot swap
    fs::rename(path_, whole_, error);
    if (error)
      throw InputError(whole_, "", "cannot be created: " + error.message(),
                       "choose another folder");
    published_ = true;
  }
  sync_folder(folder_);
}

}  // namespace polyphony::exec
