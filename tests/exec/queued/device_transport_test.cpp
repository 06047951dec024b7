// The transport for ranks with a GPU each, on queued devices and with a double of NCCL's groups.
#include "exec/device/device_transport.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/transport/forwarding.h"
#include "exec/transport/in_process.h"
#include "shared/program/queue_order.h"
#include "tests/exec/device_double/device_world.h"
#include "tests/exec/device_double/slots.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/transport/on_device.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

std::vector<Rank> everyone(int ranks) {
  std::vector<Rank> all;
  for (int rank = 0; rank < ranks; ++rank) all.emplace_back(static_cast<std::size_t>(rank));
  return all;
}

// Rank r has r + 1, r + 2, ...
Tensor numbers(std::int64_t count, int rank, torch::Device device) {
  return torch::arange(count, torch::kFloat64).add(rank + 1).to(device);
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("collectives of devices give the expected results, for any order of sums") {
    for (const bool in_order : {false, true}) {
      CAPTURE(in_order);
      on_devices(3, in_order, [](Transport& transport, torch::Device device) {
        const int me = static_cast<int>(transport.rank().value);
        const auto group = transport.make_group("all", everyone(3));
        delay_kernels(100, 5);
        // 1 + 2 + 3 and three more for each place
        Tensor sum = numbers(4, me, device);
        group->all_reduce(sum, Reduction::sum);
        Tensor largest = numbers(4, me, device);
        group->all_reduce(largest, Reduction::max);
        // uneven parts: 2, 1, 2 of [0 .. 5)
        const std::vector<std::int64_t> counts{2, 1, 2};
        const std::int64_t mine = counts[static_cast<std::size_t>(me)];
        Tensor all = torch::empty({5}, sum.options());
        group->all_gather(numbers(mine, 10 * me, device), all, counts);
        Tensor part = torch::empty({mine}, sum.options());
        group->reduce_scatter(numbers(5, me, device), part, counts);
        Tensor even = torch::empty({2}, sum.options());
        group->reduce_scatter(numbers(6, me, device), even, {2, 2, 2});
        // i sends j: i + j + 1 numbers
        std::vector<std::int64_t> sent, received;
        for (int peer = 0; peer < 3; ++peer) {
          sent.push_back(me + peer + 1);
          received.push_back(me + peer + 1);
        }
        Tensor out = torch::full({3 * me + 6}, static_cast<double>(me), sum.options());
        Tensor in = torch::empty({3 * me + 6}, sum.options());
        group->all_to_all(out, in, sent, received);
        CHECK(torch::equal(sum.cpu(), torch::tensor({6., 9., 12., 15.}, torch::kFloat64)));
        CHECK(torch::equal(largest.cpu(), torch::tensor({3., 4., 5., 6.}, torch::kFloat64)));
        CHECK(torch::equal(all.cpu(), torch::tensor({1., 2., 11., 21., 22.}, torch::kFloat64)));
        const Tensor sums = torch::arange(6, torch::kFloat64).mul(3).add(6);
        CHECK(torch::equal(part.cpu(), sums.narrow(0, me == 0 ? 0 : me + 1, mine)));
        CHECK(torch::equal(even.cpu(), sums.narrow(0, 2 * me, 2)));
        CHECK(in.sum().item<double>() == (me + 2) * 1.0 + (me + 3) * 2.0);
        delay_kernels(0, 0);
      });
    }
  }

  TEST_CASE("groups that queue pass every transport check, except tags in any order") {
    on_devices(3, true, [](Transport& transport, torch::Device device) {
      OnDeviceTransport on_device(transport, device);
      all_behaviours(on_device);
    });
  }

  TEST_CASE("messages arrive in the order in which they were sent, those to oneself at once") {
    on_devices(2, false, [](Transport& transport, torch::Device device) {
      const bool sends = transport.rank() == Rank(0);
      Tensor a = torch::full({3}, sends ? 1.0 : 0.0, device),
             b = torch::full({2}, sends ? 2.0 : 0.0, device), own = torch::full({2}, 7.0, device),
             back = torch::zeros({2}, device);
      const auto one = [&](const Tensor& tensor, std::uint64_t tag) {
        transport.exchange({{tensor, Rank(sends ? 1u : 0u), tag, sends}});
      };
      one(a, 2);
      one(b, 1);
      transport.exchange({{own, transport.rank(), 9, true}});
      transport.exchange({{back, transport.rank(), 9, false}});
      CHECK(a.sum().item<float>() == 3);
      CHECK(b.sum().item<float>() == 4);
      CHECK(back.sum().item<float>() == 14);
    });
  }

  TEST_CASE("work overlapped with a collective runs while that waits for other ranks") {
    for (const bool in_order : {false, true}) {
      CAPTURE(in_order);
      std::atomic<int> beside{0};
      on_devices(2, in_order, [&](Transport& transport, torch::Device device) {
        const bool first = transport.rank() == Rank(0);
        announce(transport, {{"pair", everyone(2)}});
        const auto group = transport.make_group("pair", everyone(2));
        connect_members(*group, device);
        const auto here = [&] { queue_on_current(device, [&] { ++beside; }); };
        // The second rank starts its call when the first one's device has finished the overlapped
        // work.
        const auto comes = [&](int after) {
          for (int look = 0; look < 20000 && beside < after; ++look)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          CHECK(beside == after);
        };
        Tensor largest = torch::full({3}, first ? 1.0 : 2.0, device),
               part = torch::empty({2}, device), all = torch::full({4}, 2.0, device),
               even = torch::empty({4}, device), uneven = torch::empty({3}, device),
               got = torch::empty({3}, device), again = torch::empty({4}, device);
        const Tensor mine = torch::full({first ? 1 : 2}, 3.0, device);
        if (first) {
          group->all_reduce_beside(largest, Reduction::max, here);
          group->reduce_scatter_beside(all, part, {2, 2}, here);
          group->all_gather_beside(part, even, {2, 2}, here);
          group->all_gather_beside(mine, uneven, {1, 2}, here);
          // Nested calls: the work is overlapped with both.
          group->all_to_all_beside(even.narrow(0, 0, 3), got, {0, 3}, {0, 3},
                                   [&] { group->all_gather_beside(part, again, {2, 2}, here); });
        } else {
          comes(1);
          group->all_reduce(largest, Reduction::max);
          comes(2);
          group->reduce_scatter(all, part, {2, 2});
          comes(3);
          group->all_gather(part, even, {2, 2});
          comes(4);
          group->all_gather(mine, uneven, {1, 2});
          comes(5);
          group->all_to_all(even.narrow(0, 0, 3), got, {3, 0}, {3, 0});
          group->all_gather(part, again, {2, 2});
        }
        CHECK(largest.sum().item<float>() == 6);
        CHECK(part.sum().item<float>() == 8);
        CHECK(even.sum().item<float>() == 16);
        CHECK(uneven.sum().item<float>() == 9);
        CHECK(got.sum().item<float>() == 12);
        CHECK(again.sum().item<float>() == 16);
      });
    }
  }

  TEST_CASE("missing members and differing calls are errors that name them") {
    DeviceWorld world;
    exec::run_in_process(2, [&](Transport& inner) {
      const torch::Device device = queued_device(static_cast<int>(inner.rank().value));
      const auto transport = world.transport(inner, device, false, Seconds(2));
      announce(*transport, {{"pair", everyone(2)}, {"alone", everyone(2)}});
      const auto group = transport->make_group("pair", everyone(2));
      Tensor x = torch::ones({4}, device), y = torch::ones({2}, device);
      group->all_reduce(inner.rank() == Rank(0) ? x : y, Reduction::sum);
      CHECK_THROWS_WITH(drain(device), doctest::Contains("all-reduce of"));
      inner.barrier();
      const auto alone = transport->make_group("alone", everyone(2));
      if (inner.rank() == Rank(0)) {
        alone->all_reduce(x, Reduction::sum);
        CHECK_THROWS_WITH(drain(device), doctest::Contains("member 1 did not come"));
      }
      inner.barrier();
    });
  }

  // Also proves that no stream has two users: the double's new streams are never handed out twice,
  // and its pools of 32, which c10 hands out in turn, are not used.
  TEST_CASE(
      "layouts run over groups that queue, all by one thread, on devices with multiprocessors for "
      "the kernels that can wait and one more") {
    for (const Case& c : sampled(3, parity_cases())) {
      INFO(c.name);
      const Slots limited(most_kernels_at_a_time(whole_program(c)) + 1);
      CHECK(complaint(c, run_on_devices(c)) == "");
    }
  }

  TEST_CASE("layouts run on devices with one hardware queue") {
    const Strictly strict({.queues = 1});
    for (const Case& c : sampled(5, parity_cases())) {
      INFO(c.name);
      CHECK(complaint(c, run_on_devices(c)) == "");
    }
  }

  TEST_CASE("layouts run on hosts that wait for their whole device inside ops") {
    const Strictly strict({.queues = 32, .waits_every = 7});
    for (const Case& c : sampled(5, parity_cases())) {
      INFO(c.name);
      CHECK(complaint(c, run_on_devices(c)) == "");
    }
  }

  // A buffer is filled by the first launch of its op, on another stream than the others.
  TEST_CASE("rows that come from several ranks reach a buffer after it was filled") {
    int layouts = 0;
    for (const std::vector<Case>& cases : {sampled(8, parity_cases()), sampled(8, planned_cases())})
      for (const Case& c : cases) {
        const Program program = whole_program(c);
        bool several = false;
        for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
          const QueueOrder order(program, Rank(r));
          for (const Launch& launch : order.launches()) several = several || !launch.last;
        }
        if (!several) continue;
        INFO(c.name);
        delay_kernels(500, static_cast<std::uint64_t>(++layouts));
        CHECK(complaint(c, run_on_devices(c)) == "");
        delay_kernels(0, 0);
      }
    CHECK(layouts > 5);
  }

  TEST_CASE("the transport is told when the host enters an op, and when it leaves it") {
    class Watched : public ForwardingTransport {
     public:
      using ForwardingTransport::ForwardingTransport;
      void watch(std::function<std::uint64_t()> now, std::function<std::string()> text) override {
        if (now) place = now;
        if (text) unended = text;
      }
      std::function<std::uint64_t()> place;
      std::function<std::string()> unended;
    };
    const auto cases = parity_cases();
    const auto found = std::find_if(cases.begin(), cases.end(),
                                    [](const Case& c) { return world_size(c.layout) == 1; });
    REQUIRE(found != cases.end());
    const torch::Device device = queued_device(0);
    Watched transport(alone_on_device(std::move(make_in_process(1).front())));
    const Scenario scenario = make_scenario(*found);
    const auto dataset = make_dataset(*found, scenario);
    const Program program = whole_program(*found);
    std::vector<std::uint64_t> inside;
    RunnerOptions options{.device = device};
    options.watch = [&](OpId, bool starts) {
      if (starts) inside.push_back(transport.place());
    };
    Runner runner(transport, scenario, program, options);
    CHECK(transport.place() % 2 == 0);
    const auto inputs = pack_inputs(program, Rank(0), *dataset, {scenario.data.seed, 0}, device);
    for (int step = 0; step < 2; ++step)
      runner.train_step(
          program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, 1e-3);
    CHECK(transport.place() % 2 == 0);
    drain(device);
    CHECK(transport.unended() == "");
    REQUIRE(inside.size() == 2 * program.ops.size());
    for (std::size_t i = 0; i < inside.size(); ++i) CHECK(inside[i] == 2 * i + 1);
  }

  // Run by scripts/nightly.
  TEST_CASE("all layouts, with one hardware queue and hosts that wait" * doctest::skip()) {
    for (const std::vector<Case>& cases :
         {parity_cases(), planned_cases(), searched_cases(), offload_cases()})
      for (const Case& c : cases) {
        INFO(c.name);
        for (const StrictDevice& device :
             {StrictDevice{.queues = 1}, StrictDevice{.queues = 32, .waits_every = 5}}) {
          const Strictly strict(device);
          CHECK(complaint(c, run_on_devices(c)) == "");
        }
      }
  }
}

}  // namespace polyphony::exec::testing
