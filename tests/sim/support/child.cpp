#include "tests/sim/support/child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "shared/error.h"
#include "shared/files/descriptor.h"
#include "sim/runner/child_process.h"
#include "sim/runner/exit_status.h"

namespace polyphony::sim {
namespace {

// Runs in the child. Uses _exit, not exit: the child must not flush the caller's buffers or run its
// exit handlers.
[[noreturn]] void be_child(const std::function<std::string()>& work, const Pipe& result,
                           const Pipe& talk, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kSimulationFailed);  // the caller died before the line above
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(talk.write_end, STDERR_FILENO);
  // What a library prints must not mix with the caller's answer.
  dup2(talk.write_end, STDOUT_FILENO);
  std::string bytes;
  try {
    bytes = work();
  } catch (const std::bad_alloc&) {
    _exit(kOutOfMemory);
  } catch (const std::exception& error) {
    const std::string line = std::string(error.what()) + "\n";
    write_all(STDERR_FILENO, line.data(), line.size());
    _exit(kSimulationFailed);
  }
  _exit(write_all(result.write_end, bytes.data(), bytes.size()) == 0 ? 0 : kSimulationFailed);
}

}  // namespace

std::string run_in_child(const std::function<std::string()>& work) {
  Pipe result, talk;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0 && errno == ENOMEM) throw std::bad_alloc();
  POLYPHONY_CHECK(child >= 0, "fork: " << std::strerror(errno));
  if (child == 0) be_child(work, result, talk, parent);
  return result_of(child, result, talk, "the simulating child");
}

}  // namespace polyphony::sim
