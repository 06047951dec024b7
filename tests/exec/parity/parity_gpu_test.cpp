// The layouts of parity on this machine's GPUs: run by scripts/first_gpu_hour, a few layouts in a
// process at a time, so that a layout that fails or never ends stops no other.
//
// POLYPHONY_LAYOUTS: numbers of the layouts to run ("0,4,7"; absent: all), as in "list of layouts".
// Each layout prints "layout NUMBER begins: NAME" and "layout NUMBER: ok, SECONDS s" or what is
// wrong with it, at once, so that output that was cut off still names it.
#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <set>
#include <sstream>

#include "exec/system/process.h"
#include "exec/transport/in_process.h"
#include "exec/transport/staged.h"
#include "shared/model/layout.h"
#include "tests/exec/device_double/device_world.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/parity/parity_part.h"
#include "tests/exec/support/gpu_or_double.h"
#include "tests/exec/transport/rank_processes.h"

namespace polyphony::exec::testing {

namespace {

// Below the 60 s that scripts/first_gpu_hour gives a process, so that what the ranks said is
// printed.
constexpr Seconds kLimit{55};

// Every layout of the parity matrix, and those that communicate in other ways.
const std::vector<Case>& layouts() {
  static const std::vector<Case> all = [] {
    std::vector<Case> cases = parity_cases();
    for (const Case& c : gloo_cases())
      if (std::none_of(cases.begin(), cases.end(),
                       [&](const Case& known) { return known.name == c.name; }))
        cases.push_back(c);
    return cases;
  }();
  return all;
}

std::vector<std::size_t> chosen() {
  std::vector<std::size_t> numbers;
  if (const char* const text = std::getenv("POLYPHONY_LAYOUTS")) {
    std::istringstream list(text);
    for (std::string number; std::getline(list, number, ',');)
      numbers.push_back(std::stoul(number));
  } else {
    numbers.resize(layouts().size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  }
  return numbers;
}

// Runs a layout and, if this rank `speaks`, prints the two lines. `run` returns the outcome.
// Returns what is wrong; empty for ranks that are not judged.
std::string report(std::size_t number, bool speaks,
                   const std::function<Outcome(const Case&)>& run) {
  const Case& c = layouts().at(number);
  if (speaks) std::cout << "layout " << number << " begins: " << c.name << std::endl;
  const Seconds begin = steady_now();
  const Outcome outcome = run(c);
  if (!speaks) return {};
  const std::string wrong = complaint(c, outcome);
  std::cout << "layout " << number << ": ";
  if (wrong.empty())
    std::cout << "ok, " << (steady_now() - begin).count() << " s" << std::endl;
  else
    std::cout << "WRONG: " << wrong << std::endl;
  return wrong;
}

// Runs the chosen layouts that have as many ranks as there are processes.
void run_on_gpus(Transport& transport, torch::Device device) {
  const bool speaks = transport.rank() == Rank(0);
  if (speaks)
    std::cout << "layouts on " << transport.world_size() << " ranks over "
              << (!device.is_cuda()    ? "Gloo on CPUs"
                  : transport.queues() ? "NCCL"
                                       : "host memory")
              << std::endl;
  for (const std::size_t number : chosen()) {
    if (world_size(layouts().at(number).layout) != transport.world_size()) continue;
    report(number, speaks, [&](const Case& c) {
      TransportPart part(transport, transport.world_size(), c.name + "/");
      return run_case(part, c, device);
    });
    transport.barrier();
  }
}

const bool kGpuRole = add_device_role("layouts on GPUs", run_on_gpus);

}  // namespace

// What run_on_gpus() does, with a double of NCCL's groups.
TEST_SUITE("queued device") {
  TEST_CASE("layouts run one after another over the same devices and messages between them") {
    std::vector<Case> cases;
    for (const Case& c : layouts())
      if (world_size(c.layout) == 2 && cases.size() < 12) cases.push_back(c);
    std::vector<std::string> wrong;
    on_devices(2, false, [&](Transport& transport, torch::Device device) {
      for (const Case& c : cases) {
        TransportPart part(transport, 2, c.name + "/");
        const Outcome outcome = run_case(part, c, device);
        if (transport.rank() == Rank(0)) wrong.push_back(complaint(c, outcome));
        transport.barrier();
      }
    });
    CHECK(wrong == std::vector<std::string>(12));
  }
}

// Ranks are threads that share the GPU, and exchange through host memory.
TEST_SUITE("machine's GPU") {
  TEST_CASE("layouts compute the reference's step") {
    const std::optional<torch::Device> device = gpu_or_double();
    if (!device) return;
    for (const std::size_t number : chosen()) {
      INFO(layouts().at(number).name);
      const std::string wrong = report(number, true, [&](const Case& c) {
        if (!device->is_cuda()) return run_queued(c);  // a device for each rank
        Outcome outcome;
        exec::run_in_process(world_size(c.layout), [&](Transport& inner) {
          StagedTransport transport(std::make_unique<ForwardingTransport>(inner));
          const Outcome mine = run_case(transport, c, *device);
          if (inner.rank() == Rank(0)) outcome = mine;
        });
        return outcome;
      });
      CHECK(wrong == "");
    }
  }
}

// A process and a GPU for each rank, over NCCL. Without GPUs over Gloo, which tests the test.
TEST_SUITE("machine's GPUs") {
  TEST_CASE("layouts over processes with a GPU each compute the reference's step") {
    REQUIRE(kGpuRole);
    if (!gpu_or_double()) return;
    std::set<int> counts;
    for (const std::size_t number : chosen())
      counts.insert(world_size(layouts().at(number).layout));
    for (const int ranks : counts) {
      const auto results = run_rank_processes("layouts on GPUs", ranks, kLimit);
      std::cout << results.front().output << std::flush;
      CHECK(results.front().output.find("WRONG") == std::string::npos);
      for (const RankResult& result : results) {
        CAPTURE(result.output);
        CHECK(result.exit_status == 0);
      }
    }
  }

  // Not a test. Cheapest first within a number of ranks.
  TEST_CASE("list of layouts" * doctest::skip()) {
    struct Row {
      int ranks;
      std::size_t ops, number;
      auto operator<=>(const Row&) const = default;
    };
    std::vector<Row> rows;
    for (std::size_t number = 0; number < layouts().size(); ++number) {
      const Case& c = layouts()[number];
      rows.push_back({world_size(c.layout), whole_program(c).ops.size(), number});
    }
    std::sort(rows.begin(), rows.end());
    for (const Row& row : rows)
      std::cout << "layout " << row.number << ": " << row.ranks << " ranks, " << row.ops
                << " ops: " << layouts()[row.number].name << "\n";
  }
}

}  // namespace polyphony::exec::testing
