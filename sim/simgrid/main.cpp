// polyphony-simulate: plays one compiled Program on SimGrid. It reads a request from standard input
// and writes the result to standard output (sim/runner/play_request.h); other programs start it
// (sim/runner/helper.h). It is the only program that is linked to SimGrid.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "shared/error.h"
#include "shared/files/descriptor.h"
#include "sim/runner/exit_status.h"
#include "sim/runner/play_request.h"
#include "sim/simgrid/platform.h"
#include "sim/simgrid/player.h"

namespace polyphony::sim {
namespace {

// Standard input: mapped if it is a file, read to its end otherwise.
PlayRequest read_input() {
  struct stat status{};
  if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
    if (bytes != MAP_FAILED) {
      PlayRequest request = read_request({static_cast<const char*>(bytes), size});
      munmap(bytes, size);
      return request;
    }
  }
  std::string bytes;
  char block[1 << 16];
  for (ssize_t count = 0; (count = read(STDIN_FILENO, block, sizeof block)) > 0;)
    bytes.append(block, static_cast<std::size_t>(count));
  return read_request(bytes);
}

PlayResult play(const PlayRequest& request) {
  const auto before = std::chrono::steady_clock::now();
  const Platform platform(request.costs, request.precision);
  Player player(request.compiled, request.costs, platform);
  player.run();
  PlayResult result;
  result.wall = Seconds(std::chrono::steady_clock::now() - before);
  result.flows = player.flows();
  result.sent_on_node = player.sent_on_node();
  result.sent_on_fabric = player.sent_on_fabric();
  const auto nodes = static_cast<std::uint32_t>(request.compiled.nodes.size());
  result.start.reserve(nodes);
  result.end.reserve(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    result.start.push_back(player.start(node));
    result.end.push_back(player.end(node));
  }
  return result;
}

// Ends without running exit handlers: SimGrid's take time, and nothing is left to be done.
int serve() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a simulation ends with the program that wants its result
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // What a library prints must not mix with the result.
  const int output = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  try {
    const std::string bytes = to_bytes(play(read_input()));
    return write_all(output, bytes.data(), bytes.size()) == 0 ? 0 : kSimulationFailed;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kSimulationFailed;
  }
}

}  // namespace
}  // namespace polyphony::sim

int main(int count, char**) {
  if (count > 1) {
    std::fputs(
        "polyphony-simulate reads a request from standard input. Other programs start it;\n"
        "to simulate a scenario, run: polyphony simulate SCENARIO\n",
        stderr);
    return polyphony::sim::kSimulationFailed;
  }
  _exit(polyphony::sim::serve());
}
