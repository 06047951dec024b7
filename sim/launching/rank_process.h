// The processes of a local run: starts its ranks, reads their output, ends them, tells why one
// ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace polyphony::sim {

struct PipeEnds {
  int read = -1, write = -1;
};

// A pipe whose reads never block.
PipeEnds make_pipe();
// Returns everything that can be read now.
std::string drain(int file);

struct Child {
  pid_t pid = -1;
  bool running = false;
  int talk = -1;         // read end of its stderr
  int status = 0;        // of waitpid
  bool asked = false;    // the launcher asked it to stop
  bool hurried = false;  // the launcher killed it
  bool blames = false;   // it reported the loss of another rank

  bool failed() const;
  bool stopped() const;  // by the launcher's signal, before it could handle it
  bool refused() const;  // it refused its input
  int severity() const;  // causes before consequences; 0: it did not fail
  std::string ending() const;
};

struct RankCommand {
  int ranks = 1;
  std::vector<std::string> arguments;  // of polyphony-worker
  int folder_lock = -1;                // inherited by every rank (shared/files/run_folder.h)
};
// Starts all ranks; rank 0's stdout goes to `output`. Adds to `children` as ranks start, also if it
// throws.
void start_ranks(const RankCommand& command, int output, std::vector<Child>& children);
void kill_running(std::vector<Child>& children, int number);
// Returns a child that has ended, or null.
Child* reap(std::vector<Child>& children);

// Kills the children that still run when the launcher leaves by an exception.
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
