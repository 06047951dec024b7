// The result of a child process that writes it to one pipe and its errors to another.
#pragma once

#include <sys/types.h>

#include <string>

namespace polyphony::sim {

// A pipe. Its ends close with it, and in a program that a child executes.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe();  // throws InternalError
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  static void close_end(int& end);
};

// Closes this process' write ends, reads both pipes until the child has closed them, and waits for
// the child. Returns the bytes in `result`.
//   Throws std::bad_alloc if the child exits with kOutOfMemory (sim/runner/exit_status.h), and
//   InternalError if it fails in another way: with `name` and the line of `errors` that says why.
std::string result_of(pid_t child, Pipe& result, Pipe& errors, const std::string& name);

}  // namespace polyphony::sim
