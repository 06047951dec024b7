// Whose a run's folder is (shared/files/run_paths.h has its names). run.lock marks it as a run's, and
// says who owns it, where and since when.
// One owner at a time: a lock of the file system (flock, which NFS, CephFS, GPFS and Lustre mounted
// with -o flock carry to other machines), held by every process that inherited it, gone with the
// last of them, however it ends. Where a file system has no locks, note() says so.
// Only files of these names are ever removed, in a folder that a run marked, and only when told.
#pragma once

#include <cstdint>
#include <string>

#include "shared/files/run_paths.h"

namespace polyphony {

// What happens to an earlier run in the same folder: it is continued, removed, or in the way.
enum class EarlierRun : std::uint8_t { resume, remove, refuse };
// Of a command's --resume and --fresh. InputError: both.
EarlierRun earlier_run(bool resume, bool fresh);

// The environment variable that tells a launcher's ranks the descriptor of its claim.
inline constexpr const char* kRunLock = "POLYPHONY_RUN_LOCK";

class RunFolder {
 public:
  // Claims the folder, which is made if need be; nothing else is changed. `owner`: the command, for
  // those who come later. `inherited`: a lock() that the process which started this one has claimed
  // the folder with; the claim is then that process's. Errors: InputError when another run is at
  // work here, when an earlier one is in the way, or when files have our names that no run of ours
  // has left.
  RunFolder(const std::string& path, EarlierRun earlier, const std::string& owner,
            int inherited = -1);
  // What the claim made is removed again when no run has begun since.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Where the claim's owner puts the scenario for its ranks to read; gone when the run begins.
  std::string given_scenario() const { return paths_.folder + "/scenario.next.json"; }
  // All is checked, the run begins: EarlierRun::remove removes now.
  void begin();
  const RunPaths& paths() const { return paths_; }
  EarlierRun earlier() const { return earlier_; }
  // A descriptor of the lock, for child processes to inherit.
  int lock() const { return lock_; }
  // What the file system cannot do; empty: nothing.
  const std::string& note() const { return note_; }

 private:
  void take(const std::string& owner);
  void check() const;
  void release(bool refused);

  RunPaths paths_;
  EarlierRun earlier_;
  int lock_ = -1;
  bool made_folder_ = false, made_lock_ = false;
  std::string note_;
};

}  // namespace polyphony
