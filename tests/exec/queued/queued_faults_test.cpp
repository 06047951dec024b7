// Typical mistakes in programs for GPUs also fail on the queued device, and are detected: each
// mistake has a test of its own, which also makes the same run without the mistake.
#include <doctest/doctest.h>

#include "exec/transport/in_process.h"
#include "tests/exec/device_double/queued_transport.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

namespace {

// Returns the first error of the step over several seeds of delays; empty if there is none.
std::string found(const Case& c, SeededFault fault, std::int64_t longest_delay_us) {
  std::string text;
  for (std::uint64_t seed = 1; seed <= 5 && text.empty(); ++seed) {
    delay_kernels(longest_delay_us, seed);
    seed_fault(fault);
    try {
      text = complaint(c, run_queued(c));
    } catch (const std::exception& error) {
      text = error.what();
    }
    seed_fault(SeededFault::none);
    delay_kernels(0, 0);
  }
  return text;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("a stream that does not wait for another's event is found") {
    const std::vector<Case> cases = parity_cases();
    const Case& c = named(cases, "homogeneous TP1 PP2 DP1, 1f1b x4");
    CHECK(found(c, SeededFault::none, 200) == "");
    CHECK(found(c, SeededFault::missing_wait, 200) != "");
  }
  TEST_CASE("memory that is reused while another stream uses it is found") {
    const std::vector<Case> cases = parity_cases();
    const Case& c = named(cases, "homogeneous TP1 PP2 DP1, 1f1b x4");
    CHECK(found(c, SeededFault::freed_early, 200) != "");
  }
  TEST_CASE("ranks that call a group in another order are found") {
    exec::run_in_process(2, [&](Transport& inner) {
      const torch::Device device = queued_device(static_cast<int>(inner.rank().value));
      QueuedTransport transport(inner);
      const auto group = transport.make_group("both", {Rank(0), Rank(1)});
      torch::Tensor sum = torch::ones({4}, device), part = torch::ones({2}, device),
                    all = torch::empty({4}, device);
      const auto reduce = [&] { group->all_reduce(sum, Reduction::sum); };
      const auto gather = [&] { group->all_gather(part, all, {2, 2}); };
      const bool first = inner.rank() == Rank(0);
      const auto both = [&] {  // a failed device accepts no more calls
        first ? reduce() : gather();
        first ? gather() : reduce();
        drain(device);
      };
      CHECK_THROWS(both());
      wait_idle(device);
    });
  }
  TEST_CASE("a remaining host wait is counted") {
    const torch::Device device = queued_device(0);
    take_counts(device);
    const torch::Tensor loss = torch::ones({8}, device).sum();
    CHECK(take_counts(device).host_waits() == 0);
    CHECK(loss.item<float>() == 8);
    CHECK(take_counts(device).host_waits() == 1);
  }
}

}  // namespace polyphony::exec::testing
