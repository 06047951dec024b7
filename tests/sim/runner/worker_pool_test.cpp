#include "sim/runner/worker_pool.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace polyphony::sim {
namespace {

std::map<std::size_t, std::string> answered(int jobs, std::size_t count,
                                            const std::function<std::string(std::size_t)>& work) {
  std::map<std::size_t, std::string> answers;
  run_in_workers(jobs, count, work, [&](std::size_t i, const std::string& answer) {
    CHECK(answers.emplace(i, answer).second);  // once for each
  });
  CHECK(answers.size() == count);
  return answers;
}

}  // namespace

TEST_CASE("a piece that takes long keeps one process, the others take the rest") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  // The first waits until every other piece is done: it would for ever if one of them were its own.
  const auto answers = answered(2, 20, [&](std::size_t i) {
    char one = 'x';
    if (i > 0 && write(ends[1], &one, 1) != 1) return std::string("no pipe");
    for (int done = 0; i == 0 && done < 19; ++done)
      if (read(ends[0], &one, 1) != 1) return std::string("no pipe");
    return std::to_string(i) + " by " + std::to_string(getpid());
  });
  std::set<std::string> processes;
  for (const auto& [i, answer] : answers) {
    CHECK(answer.rfind(std::to_string(i) + " by ", 0) == 0);
    if (i > 0) processes.insert(answer.substr(answer.find("by")));
  }
  CHECK(processes.size() == 1);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a process that dies takes its piece along, and nothing else while others live") {
  const auto answers = answered(3, 12, [](std::size_t i) {
    if (i == 4) raise(SIGKILL);
    if (i == 5) throw std::runtime_error("no such piece");
    return std::string(100000, 'a');  // more than a pipe holds
  });
  for (const auto& [i, answer] : answers)
    if (i != 4 && i != 5) CHECK(answer == std::string(100000, 'a'));
  CHECK(answers.at(4).find("killed") != std::string::npos);
  CHECK(nlohmann::json::parse(answers.at(5))["error"] == "no such piece");
}

TEST_CASE("what nobody is left for is answered as an error") {
  const auto answers = answered(2, 6, [](std::size_t) -> std::string { _exit(3); });
  for (const auto& [i, answer] : answers)
    CHECK(nlohmann::json::parse(answer)["error"] == "worker ended early");
}

}  // namespace polyphony::sim
