// Training on devices that run behind the host, as GPUs do: the reference's numbers, and how often the host waits.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

namespace {

// Of a step: for the loss, the norm and whether all is finite. And for each routing of tokens to experts, whose rows
// are the host's to know: one event.
std::int64_t waits_due(const QueuedCounts& counts, const Case& c) {
  const std::vector<Module> modules = make_scenario(c).model.modules;
  const bool routes = std::any_of(modules.begin(), modules.end(),
                                  [](const Module& module) { return module.experts > 0; });
  const auto events = counts.waits.find("event");
  return routes && events != counts.waits.end() ? std::max<std::int64_t>(1, events->second) : 1;
}

// How many are refused: what exec/README.md says runs on CPUs alone.
int check_all(const std::vector<Case>& cases, std::int64_t longest_delay_us = 0,
              std::uint64_t seed = 0) {
  int refused = 0;
  for (const Case& c : cases) {
    INFO(c.name);
    delay_kernels(longest_delay_us, seed++);
    Outcome outcome;
    try {
      outcome = run_queued(c);
    } catch (const std::exception& error) {
      delay_kernels(0, 0);
      CHECK(std::string(error.what()).find("run on CPUs") != std::string::npos);
      MESSAGE(c.name << " is refused");
      ++refused;
      continue;
    }
    delay_kernels(0, 0);
    CHECK(complaint(c, outcome) == "");
    for (const QueuedCounts& counts : outcome.counts) {
      std::string text;
      for (const auto& [what, count] : counts.waits)
        text += what + " " + std::to_string(count) + " ";
      INFO(text);
      CHECK(counts.host_waits() == waits_due(counts, c));
    }
  }
  return refused;
}

std::vector<Case> every(std::size_t step, const std::vector<Case>& cases) {
  std::vector<Case> some;
  for (std::size_t i = 0; i < cases.size(); i += step) some.push_back(cases[i]);
  return some;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("layouts compute the reference's step behind the host, which waits once a step") {
    const std::vector<Case> cases = parity_cases();
    CHECK(cases.size() > 90);
    CHECK(check_all(cases) == 0);
  }
  TEST_CASE("planned and searched steps, tapes that wait elsewhere and late kernels do, too") {
    check_all(every(2, planned_cases()), 50, 1);
    check_all(every(2, searched_cases()), 20, 2);
    check_all(offload_cases(), 20, 3);
  }
  TEST_CASE("single precision, published models and masks do, but for what runs on CPUs alone") {
    CHECK(check_all(single_precision_cases()) == 0);
    check_all(every(4, published_cases()));
    check_all(every(8, mask_cases()));
  }
  // Twenty minutes: scripts/nightly
  TEST_CASE("everything, with late kernels" * doctest::skip()) {
    for (const std::vector<Case>& cases :
         {parity_cases(), planned_cases(), searched_cases(), offload_cases(), published_cases(),
          mask_cases(), parity_matrix().cases})
      check_all(cases, 20, 4);
  }
}

}  // namespace polyphony::exec::testing
