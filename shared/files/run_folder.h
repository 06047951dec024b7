// Ownership of a run's folder (file names: shared/files/run_paths.h). The file run.lock marks the
// folder as a run's, and states which command owns it, where, and since when.
//   A folder has one owner at a time, by a file-system lock (flock, which NFS, CephFS, GPFS, and
//   Lustre mounted with -o flock pass on to other machines). Every process that inherited the lock
//   holds it; it ends with the last of them, however that process ends. If the file system has no
//   locks, note() states so.
//
//   Only files with the names of run_paths.h are ever removed, only in a folder that a run has
//   marked, and only on request (EarlierRun::remove).
#pragma once

#include <cstdint>
#include <string>

#include "shared/files/run_paths.h"

namespace polyphony {

// What to do with an earlier run in the same folder: continue it, remove it, or refuse to start.
enum class EarlierRun : std::uint8_t { resume, remove, refuse };
// Returns the choice for a command's --resume and --fresh. Throws InputError if both are given.
EarlierRun earlier_run(bool resume, bool fresh);

// Environment variable that passes the lock's descriptor from a launcher to its ranks.
inline constexpr const char* kRunLock = "POLYPHONY_RUN_LOCK";

class RunFolder {
 public:
  // Claims the folder, creating it if necessary; changes nothing else. `owner`: name of the
  // command, shown to later runs that find the folder in use. `inherited`: the lock() of a parent
  // process that has claimed the folder; the claim then stays with that process.
  //
  // Throws InputError if another run is using the folder, if an earlier run is present and
  // `earlier` is refuse, or if files have the names of run files but no run has marked the folder.
  RunFolder(const std::string& path, EarlierRun earlier, const std::string& owner,
            int inherited = -1);
  // Removes what the claim created if the run has not begun.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Where the owner writes the scenario for its ranks to read; removed when the run begins.
  std::string given_scenario() const { return paths_.folder + "/scenario.next.json"; }
  // Begins the run, after all checks: with EarlierRun::remove, the earlier run is removed now.
  void begin();
  const RunPaths& paths() const { return paths_; }
  EarlierRun earlier() const { return earlier_; }
  // Returns a descriptor of the lock, for child processes to inherit.
  int lock() const { return lock_; }
  // Returns what the file system cannot do (locks), for the user; empty if there is nothing to
  // report.
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
