// Runs the helper program polyphony-simulate, which holds SimGrid.
//
// SimGrid allows one engine per process and aborts on a fault. Every simulation therefore runs in a
// process of its own, which is executed and not forked: the caller may have threads, and what the
// simulation costs does not depend on the caller's size.
//
// Cost: 2 to 3 ms for starting the program.
#pragma once

#include <string>

namespace polyphony::sim {

// Returns the path of polyphony-simulate. Places are tried in this order:
//   1. the value of the environment variable POLYPHONY_SIMULATE; if it is set, no other place
//   2. the folder of the program or library that contains this code, then its ../libexec/polyphony
//   3. each folder of the PATH, then its ../libexec/polyphony
// Throws InputError if POLYPHONY_SIMULATE names no file, or if no place has the program.
std::string helper_program();

// Starts `program` with `request` as its standard input and returns what it writes to its standard
// output. May be called from several threads at a time.
// Throws InternalError with the program's own error line if it fails, aborts or is killed, and
// std::bad_alloc if it ran out of memory.
std::string run_helper(const std::string& program, const std::string& request);

}  // namespace polyphony::sim
