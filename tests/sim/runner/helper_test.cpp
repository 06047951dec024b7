// The helper program: what it answers, and every way in which it can fail.
#include "sim/runner/helper.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include "shared/error.h"
#include "sim/runner/play_request.h"

namespace polyphony::sim {
namespace {

// A program of so many lines of shell, in a folder that is removed with it.
class Script {
 public:
  explicit Script(const std::string& lines) {
    char name[] = "/tmp/polyphony-helper-XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(path()) << "#!/bin/sh\n" << lines << "\n";
    chmod(path().c_str(), 0700);
  }
  ~Script() { std::filesystem::remove_all(folder_); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  std::string path() const { return folder_ + "/helper"; }

 private:
  std::string folder_;
};

std::string failure(const std::string& lines) {
  const Script script(lines);
  try {
    run_helper(script.path(), "request");
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

// A graph of two nodes, one after the other, of 2 s and 3 s.
std::string request(Seconds second) {
  Compiled compiled;
  compiled.nodes = {{NodeKind::compute, 0}, {NodeKind::compute, 1}};
  compiled.successor_begin = {0, 1, 1};
  compiled.successors = {1};
  compiled.predecessors = {0, 1};
  CostTable costs;
  costs.nodes = {{Seconds(2), {}, {}}, {second, {}, {}}};
  costs.network.node_of = {0};
  return to_bytes(compiled, costs, Seconds(1e-12));
}

}  // namespace

TEST_CASE("the helper plays a request") {
  const PlayResult result = read_result(run_helper(helper_program(), request(Seconds(3))));
  CHECK(result.start == std::vector<Seconds>{Seconds(0), Seconds(2)});
  CHECK(result.end == std::vector<Seconds>{Seconds(2), Seconds(5)});
  CHECK(result.sent_on_node.size() == 1);
}

TEST_CASE("a request passes through bytes unchanged, and damaged bytes are refused") {
  const std::string bytes = request(Seconds(3));
  const PlayRequest read = read_request(bytes);
  CHECK(to_bytes(read.compiled, read.costs, read.precision) == bytes);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    CHECK_THROWS_AS(read_request(std::string_view(bytes).substr(0, cut)), InternalError);
  CHECK_THROWS_AS(read_request(bytes + "x"), InternalError);
  std::string other = bytes;
  other[0] = '?';
  CHECK_THROWS_AS(read_request(other), InternalError);
  CHECK_THROWS_AS(run_helper(helper_program(), "no request"), InternalError);
}

TEST_CASE("POLYPHONY_SIMULATE names the helper; a path without a file is bad input") {
  const Script script("true");
  setenv("POLYPHONY_SIMULATE", script.path().c_str(), 1);
  CHECK(helper_program() == script.path());
  setenv("POLYPHONY_SIMULATE", "/nowhere/polyphony-simulate", 1);
  std::string what;
  try {
    helper_program();
  } catch (const InputError& error) {
    what = error.what();
  }
  unsetenv("POLYPHONY_SIMULATE");
  CHECK(what.find("POLYPHONY_SIMULATE: must be the path of polyphony-simulate (got "
                  "\"/nowhere/polyphony-simulate\"") == 0);
  CHECK(helper_program() != script.path());
}

TEST_CASE("more bytes than a pipe holds come back") {
  const Script script("head -c 10000000 /dev/zero");
  CHECK(run_helper(script.path(), "") == std::string(10'000'000, '\0'));
}

TEST_CASE("a helper that fails is an InternalError with its own line") {
  CHECK(failure("echo no such link >&2; exit 1") ==
        "polyphony-simulate failed (exit status 1): no such link");
  CHECK(
      failure(
          "echo '[0.5] [simgrid/CRITICAL] the network broke' >&2; echo trace >&2; kill -ABRT $$") ==
      "polyphony-simulate failed (killed by Aborted): [0.5] [simgrid/CRITICAL] the network broke");
  CHECK(failure("printf 'the end' >&2; exit 7") ==
        "polyphony-simulate failed (exit status 7): the end");
  CHECK(failure("kill -KILL $$").find("killed, most likely because memory ran out") !=
        std::string::npos);
}

TEST_CASE("a helper without memory is std::bad_alloc, a missing one is named") {
  const Script script("exit 2");
  CHECK_THROWS_AS(run_helper(script.path(), ""), std::bad_alloc);
  CHECK_THROWS_WITH_AS(run_helper("/nowhere/polyphony-simulate", ""),
                       doctest::Contains("/nowhere/polyphony-simulate cannot be started"),
                       InternalError);
}

TEST_CASE("a process that may not write large files sends the request") {
  const Script script("cat");
  const std::string large(3'000'000, 'x');
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 16, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string answer = run_helper(script.path(), large);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(answer == large);
}

TEST_CASE("helpers leave no file open and no zombie behind") {
  const Script script("cat");
  const int before = dup(STDIN_FILENO);
  close(before);
  for (int i = 0; i < 50; ++i) CHECK(run_helper(script.path(), "x") == "x");
  const int after = dup(STDIN_FILENO);  // the lowest free number
  close(after);
  CHECK(after == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

}  // namespace polyphony::sim
