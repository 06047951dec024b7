// run_in_child: the child's bytes come back, and every way to die becomes an InternalError that
// says why.
#include "tests/sim/support/child.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "shared/error.h"

namespace polyphony::tests {
namespace {

std::string failure(const std::function<std::string()>& work) {
  try {
    sim::run_in_child(work);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a child returns its bytes, also more than a pipe holds") {
  CHECK(sim::run_in_child([] { return std::string(); }).empty());
  CHECK(sim::run_in_child([] { return std::string("a\0b", 3); }) == std::string("a\0b", 3));
  const std::string large(10'000'000, 'x');
  CHECK(sim::run_in_child([&] { return large; }) == large);
}

TEST_CASE(
    "nothing that a child changes comes back, and what it prints is not the caller's output") {
  int value = 1;
  sim::run_in_child([&] {
    value = 2;
    std::printf("talk\n");
    std::fflush(stdout);
    return std::string();
  });
  CHECK(value == 1);
}

TEST_CASE("a child that throws, aborts, exits or is killed is an InternalError with its own line") {
  CHECK(failure([]() -> std::string { throw std::runtime_error("no such link"); }) ==
        "the simulating child failed (exit status 1): no such link");
  CHECK(failure([]() -> std::string {
          std::fputs("[0.5] [simgrid/CRITICAL] the network broke\n[0.5] trace\n", stderr);
          std::abort();
        }) ==
        "the simulating child failed (killed by Aborted): [0.5] [simgrid/CRITICAL] the network "
        "broke");
  CHECK(failure([]() -> std::string {
          std::fputs("the end", stderr);
          _exit(7);
        }) == "the simulating child failed (exit status 7): the end");
  CHECK(failure([]() -> std::string {
          raise(SIGKILL);
          return "";
        }) ==
        "the simulating child failed (killed, most likely because memory ran out: ask for fewer "
        "microbatches or ranks, or --estimate)");
}

TEST_CASE("children leave no file open and no zombie behind") {
  const int before = dup(STDIN_FILENO);
  close(before);
  for (int i = 0; i < 50; ++i) sim::run_in_child([] { return std::string("x"); });
  const int after = dup(STDIN_FILENO);  // the lowest free number
  close(after);
  CHECK(after == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

}  // namespace polyphony::tests
