// The processes of a local run: how its ranks are started, heard, ended and judged.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace polyphony::sim {

struct Pipe {
  int read = -1, write = -1;
};

// Reading never waits.
Pipe make_pipe();
// What there is to read.
std::string drain(int file);

struct Child {
  pid_t pid = -1;
  bool running = false;
  int talk = -1;         // read end of its stderr
  int status = 0;        // of waitpid
  bool asked = false;    // by us, to stop
  bool hurried = false;  // killed by us
  bool blames = false;   // another rank

  bool failed() const;
  bool stopped() const;  // by what we asked, before it could listen
  bool refused() const;  // its input
  int severity() const;  // causes before consequences; 0: it did not fail
  std::string ending() const;
};

struct RankCommand {
  int ranks = 1;
  std::vector<std::string> arguments;  // of polyphony-worker
  int folder_lock = -1;                // inherited by every rank (shared/files/run_folder.h)
};
// Rank 0's stdout goes to `output`. Adds to `children` as it goes, also when it throws.
void start_ranks(const RankCommand& command, int output, std::vector<Child>& children);
void kill_running(std::vector<Child>& children, int number);
// The child that ended, if any did.
Child* reap(std::vector<Child>& children);

// Ends what runs when the launcher leaves by an exception.
class Reaper {
 public:
  explicit Reaper(std::vector<Child>& children) : children_(children) {}
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

 private:
  std::vector<Child>& children_;
};

}  // namespace polyphony::sim
