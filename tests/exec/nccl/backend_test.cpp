// exec/device/nccl.cpp and nccl_backend.cpp over the double of NCCL: groups, collectives and
// messages that succeed.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "exec/device/device.h"
#include "exec/device/nccl.h"
#include "exec/transport/announcing.h"
#include "shared/program/group_rounds.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/nccl/nccl_world.h"
#include "tests/exec/nccl_double/cuda.h"
#include "tests/exec/nccl_double/nccl_double.h"
#include "tests/exec/transport/on_device.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

int self(const Transport& transport) { return static_cast<int>(transport.rank().value); }

Tensor filled(std::int64_t count, double value, torch::Device device) {
  return torch::full({count}, value, torch::dtype(torch::kFloat64).device(device));
}

bool all_equal(const Tensor& tensor, double value) {
  return torch::equal(tensor.cpu(), filled(tensor.numel(), value, torch::kCPU));
}

}  // namespace

TEST_SUITE("nccl") {
  TEST_CASE("transports over NCCL pass every transport check, except tags in any order") {
    for (const int ranks : {2, 3})
      over_nccl(ranks, /*in_order=*/true, [](Transport& transport, torch::Device device) {
        OnDeviceTransport on_device(transport, device);
        all_behaviours(on_device);
      });
  }

  // Rank r has r + 1: sums are n(n+1)/2, maxima n.
  TEST_CASE("collectives over NCCL give the expected results") {
    for (const int ranks : {2, 4, 8})
      over_nccl(ranks, false, [ranks](Transport& transport, torch::Device device) {
        const double mine = self(transport) + 1, sum = ranks * (ranks + 1) / 2.0;
        announce(transport, {{"all", first_ranks(ranks), true}});
        const auto group = transport.make_group("all", first_ranks(ranks));
        const auto members = static_cast<std::size_t>(ranks);
        delay_kernels(100, 5);
        for (const torch::Dtype type :
             {torch::kFloat32, torch::kFloat64, torch::kBFloat16, torch::kInt64}) {
          Tensor total = filled(5, mine, device).to(type), most = total.clone();
          group->all_reduce(total, Reduction::sum);
          group->all_reduce(most, Reduction::max);
          CHECK(all_equal(total.to(torch::kFloat64), sum));
          CHECK(all_equal(most.to(torch::kFloat64), ranks));
        }
        // Member m has 1 row, the last one 2: as messages and reductions; with 3 each as one call.
        std::vector<std::int64_t> uneven(members - 1, 1);
        uneven.push_back(2);
        for (const auto& counts : {std::vector<std::int64_t>(members, 3), uneven}) {
          const std::int64_t count = counts[static_cast<std::size_t>(self(transport))];
          const bool same = counts.front() == 3;
          Tensor all = filled(same ? 3 * ranks : ranks + 1, -1, device), part;
          group->all_gather(filled(count, mine, device), all, counts);
          std::int64_t begin = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            const std::int64_t rows = counts[static_cast<std::size_t>(rank)];
            CHECK(all_equal(all.narrow(0, begin, rows), rank + 1));
            if (rank == self(transport)) part = all.narrow(0, begin, rows);
            begin += rows;
          }
          all.fill_(mine);
          group->reduce_scatter(all, part, counts);  // in place
          CHECK(all_equal(part, sum));
          Tensor apart = torch::empty({count}, all.options());
          all.fill_(mine);
          group->reduce_scatter(all, apart, counts);
          CHECK(all_equal(apart, sum));
        }
        // To member j: j + 1 elements, so every member gets its number of elements from each.
        std::vector<std::int64_t> sent, received(members, self(transport) + 1);
        for (int rank = 0; rank < ranks; ++rank) sent.push_back(rank + 1);
        const Tensor out = filled(ranks * (ranks + 1) / 2, mine, device);
        Tensor in = filled(ranks * (self(transport) + 1), -1, device);
        group->all_to_all(out, in, sent, received);
        for (int rank = 0; rank < ranks; ++rank)
          CHECK(
              all_equal(in.narrow(0, rank * (self(transport) + 1), self(transport) + 1), rank + 1));
        delay_kernels(0, 0);
      });
  }

  TEST_CASE("calls that are overlapped with other work run on a stream of the group") {
    over_nccl(4, false, [](Transport& transport, torch::Device device) {
      const double mine = self(transport) + 1;
      const auto group = transport.make_group("all", first_ranks(4));
      delay_kernels(300, 9);
      int beside = 0;
      const auto work = [&] { ++beside; };
      for (int round = 0; round < 5; ++round) {
        // The tensors are released while their kernels may still be queued.
        Tensor total = filled(1000, mine, device), part = torch::empty({1000}, total.options()),
               all = torch::empty({4000}, total.options()), swapped = torch::empty_like(all),
               uneven = torch::empty({1003}, total.options());
        group->all_reduce_beside(total, Reduction::sum, work);
        group->all_gather_beside(total, all, {1000, 1000, 1000, 1000}, work);
        group->reduce_scatter_beside(all, part, {1000, 1000, 1000, 1000}, work);
        group->all_to_all_beside(all, swapped, {1000, 1000, 1000, 1000}, {1000, 1000, 1000, 1000},
                                 work);
        const std::int64_t rows = self(transport) == 3 ? 1000 : 1;
        group->all_gather_beside(part.narrow(0, 0, rows).contiguous(), uneven, {1, 1, 1, 1000},
                                 work);
        CHECK(all_equal(part, 40));
        CHECK(all_equal(swapped, 10));
        CHECK(all_equal(uneven, 40));
      }
      CHECK(beside == 25);
      delay_kernels(0, 0);
    });
  }

  // As in tensor, context and data parallel groups: 2, 4 or 8 ranks, one to four apart.
  TEST_CASE("groups are made in rounds, with the members and order of their announcements") {
    nccl::take_made();
    constexpr int kRanks = 8;
    std::set<std::vector<std::size_t>> groups;
    over_nccl(kRanks, false, [&](Transport& transport, torch::Device device) {
      std::vector<NamedGroup> mine;
      for (const auto& [size, stride] :
           {std::pair(2, 1), std::pair(2, 2), std::pair(4, 2), std::pair(8, 1)}) {
        const int first =
            self(transport) / (size * stride) * (size * stride) + self(transport) % stride;
        NamedGroup group{
            std::to_string(size) + " of " + std::to_string(first) + " by " + std::to_string(stride),
            {},
            size == 4};
        // Backwards, so that the order is not the ranks'.
        for (int i = size; i-- > 0;)
          group.members.emplace_back(static_cast<std::size_t>(first + i * stride));
        mine.push_back(group);
      }
      announce(transport, mine);
      for (const NamedGroup& named : mine) {
        const auto group = transport.make_group(named.name, named.members);
        const std::vector<std::int64_t> each(named.members.size(), 1);
        Tensor all = torch::empty({group->size()}, torch::dtype(torch::kFloat64).device(device));
        group->all_gather(filled(1, self(transport), device), all, each);
        std::vector<double> members;
        for (const Rank member : named.members)
          members.push_back(static_cast<double>(member.value));
        CHECK(torch::equal(all.cpu(), torch::tensor(members, torch::kFloat64)));
      }
    });
    // The world, 4 pairs twice, 2 groups of four, one of eight; each kind partitions the ranks.
    const nccl::Made made = nccl::take_made();
    CHECK(made.communicators == 1 + 4 + 4 + 2 + 1);
    CHECK(made.splits == 4);
  }

  TEST_CASE("messages have a communicator for each directed pair, made as they are needed") {
    nccl::take_made();
    over_nccl(4, false, [](Transport& transport, torch::Device device) {
      const Rank next(static_cast<std::size_t>((self(transport) + 1) % 4)),
          previous(static_cast<std::size_t>((self(transport) + 3) % 4));
      std::vector<Channel> channels{{transport.rank(), next}, {previous, transport.rank()}};
      std::sort(channels.begin(), channels.end());
      transport.prepare(channels);
      for (int round = 0; round < 3; ++round) {
        // Two to the next rank and two from the previous, in one exchange.
        std::vector<Transfer> transfers;
        for (std::uint64_t tag = 0; tag < 2; ++tag) {
          const double value = 10 * self(transport) + static_cast<double>(tag);
          transfers.push_back({filled(3, value, device), next, tag, true});
          transfers.push_back({filled(3, -1, device), previous, tag, false});
        }
        transport.exchange(transfers);
        for (const Transfer& transfer : transfers)
          if (!transfer.sends)
            CHECK(all_equal(transfer.tensor, 10.0 * static_cast<double>(previous.value) +
                                                 static_cast<double>(transfer.tag)));
      }
      // Between ranks that were not prepared.
      Tensor across = filled(2, self(transport), device);
      const Rank opposite(static_cast<std::size_t>((self(transport) + 2) % 4));
      if (self(transport) < 2)
        transport.exchange({{across, opposite, 7, true}});
      else
        transport.exchange({{across, opposite, 7, false}});
      CHECK(all_equal(across, self(transport) % 2));
    });
    // Six pairs, each with a parent of its own.
    const nccl::Made made = nccl::take_made();
    CHECK(made.communicators == 12);
    CHECK(made.splits == 6);
  }

  TEST_CASE("ranks that share a GPU exchange through host memory") {
    nccl::take_made();
    nccl::share_gpu(0, 1);
    over_nccl(2, false, [](Transport& transport, torch::Device device) {
      const auto group = transport.make_group("both", first_ranks(2));
      Tensor sum = filled(3, self(transport) + 1, device);
      group->all_reduce(sum, Reduction::sum);
      CHECK(all_equal(sum, 3));
    });
    nccl::share_gpu(-1, -1);
    CHECK(nccl::take_made().communicators == 0);
  }

  TEST_CASE("a device is chosen and described as CUDA describes it") {
    LaunchEnv launch;
    launch.local_rank = 3;
    const torch::Device device = choose_device("cuda", launch);
    CHECK(device == queued_device(3));
    CHECK(gpu_libraries() == "CUDA 13.0, NCCL 2.28.9");
    CHECK(gpu_name(device) == "double of a GPU (compute capability 9.0)");
    CHECK(gpu_memory(device) == Bytes(std::int64_t{80} << 30));
    CHECK(processors_of(device) == 132);
  }
}

}  // namespace polyphony::exec::testing
