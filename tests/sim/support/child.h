// Runs a function in a forked child process and returns its result through a pipe.
//
// SimGrid allows one engine per process and aborts on errors. Tests that play a Program of their own
// therefore do so in a child; the caller receives either the bytes or an InternalError with the
// child's error message. (Commands execute polyphony-simulate instead: sim/runner/helper.h.)
//
// The child sees a copy of the caller's memory at the time of the call, and its changes to memory
// are lost. Only the calling thread exists in the child, so no other thread may be running.
//
// Cost: about 1 ms for a small caller. The kernel copies page tables, so that a caller with 1 GiB
// of memory pays 60 ms or more (measured on a busy machine).
#pragma once

#include <functional>
#include <string>

namespace polyphony::sim {

// Runs `work` in a child and returns the bytes that it returned. Throws InternalError if it throws,
// aborts or is killed, and std::bad_alloc if memory runs out.
std::string run_in_child(const std::function<std::string()>& work);

}  // namespace polyphony::sim
