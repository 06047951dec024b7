// Runs a piece of work in a forked child and brings its bytes back through a pipe.
//   SimGrid holds one engine per process and aborts on a fault: so every simulation lives and dies
//   in a child, and the caller gets either the bytes or an InternalError that carries the child's
//   own error line.
//   The child sees a copy of the caller's memory at the time of the call; nothing it changes comes
//   back. Only the calling thread exists in it: no other thread may be running.
//
// Cost: about 1 ms for a small caller; the kernel copies page tables, so a caller that holds 1 GiB
// pays 60 ms and more (measured on a busy machine).
#pragma once

#include <functional>
#include <string>

namespace polyphony::sim {

// `work` returns bytes. Throws InternalError when it throws, aborts, or is killed.
std::string run_in_child(const std::function<std::string()>& work);

}  // namespace polyphony::sim
