// How groups of devices are made: the number of host waits for other ranks, and the errors if ranks
// disagree.
#include <doctest/doctest.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "exec/device/announced_groups.h"
#include "exec/device/device_calls.h"
#include "exec/gloo/gloo.h"
#include "exec/system/process.h"
#include "exec/transport/in_process.h"
#include "exec/wire/sockets.h"
#include "shared/error.h"
#include "shared/program/group_rounds.h"
#include "tests/exec/device_double/device_world.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

constexpr int kStartedRanks = 8, kGroups = 30;

// The k-th group of a rank: 2, 4 or 8 ranks with a stride of 1, 2 or 4, as in tensor, context and
// data parallel groups. For each k the groups partition the ranks.
NamedGroup group_of(int k, int rank) {
  struct Shape {
    int size, stride;
  };
  constexpr Shape kShapes[] = {{2, 1}, {2, 2}, {2, 4}, {4, 1}, {4, 2}, {8, 1}};
  const auto [size, stride] = kShapes[k % 6];
  const int first = rank / (size * stride) * (size * stride) + rank % stride;
  NamedGroup group{"g" + std::to_string(k) + "." + std::to_string(first), {}, k == 5};
  for (int i = 0; i < size; ++i)
    group.members.emplace_back(static_cast<std::size_t>(first + i * stride));
  return group;
}

std::vector<NamedGroup> groups_of(Rank rank) {
  std::vector<NamedGroup> groups;
  for (int k = 0; k < kGroups; ++k) groups.push_back(group_of(k, static_cast<int>(rank.value)));
  return groups;
}

std::vector<std::unique_ptr<Communicator>> made(Transport& transport, bool announced) {
  const std::vector<NamedGroup> mine = groups_of(transport.rank());
  if (announced) announce(transport, mine);
  std::vector<std::unique_ptr<Communicator>> groups;
  for (const NamedGroup& group : mine)
    groups.push_back(transport.make_group(group.name, group.members));
  return groups;
}

// One sum in each group: every member contributes its number plus one.
void check_sums(Transport& transport, torch::Device device,
                const std::vector<std::unique_ptr<Communicator>>& groups) {
  const auto mine = static_cast<double>(transport.rank().value) + 1;
  for (int k = 0; k < kGroups; ++k) {
    double expected = 0;
    for (const Rank member : group_of(k, static_cast<int>(transport.rank().value)).members)
      expected += static_cast<double>(member.value) + 1;
    Tensor sum = torch::full({2}, mine, torch::dtype(torch::kFloat64).device(device));
    groups[static_cast<std::size_t>(k)]->all_reduce(sum, Reduction::sum);
    CHECK(sum.sum().item<double>() == 2 * expected);
  }
}

// Errors of the members of a family, each of which splits it once.
std::vector<std::string> said(const std::vector<DevicePart>& parts, Seconds patience) {
  static int families = 0;
  const std::string name = "said " + std::to_string(++families);
  const auto size = static_cast<int>(parts.size());
  std::vector<FamilyPointer> members;
  for (int member = 0; member < size; ++member)
    members.push_back(queued_family(name, member, size, queued_device(member), patience));
  std::vector<std::string> texts;
  for (int member = 0; member < size; ++member)
    if (parts[static_cast<std::size_t>(member)].size > 0)
      members[static_cast<std::size_t>(member)]->split(parts[static_cast<std::size_t>(member)]);
  for (int member = 0; member < size; ++member) {
    std::string text;
    try {
      if (parts[static_cast<std::size_t>(member)].size == 0) continue;
      while (!members[static_cast<std::size_t>(member)]->ready()) std::this_thread::yield();
    } catch (const std::exception& error) {
      text = error.what();
    }
    texts.push_back(text);
  }
  return texts;
}

// 8 ranks of this process over Gloo, with 30 groups each: seconds of the last rank. Without
// devices: only the groups of the host.
double start_over_gloo(bool devices, bool announced) {
  const std::uint16_t port = listen_at("127.0.0.1").port;
  std::vector<double> took(kStartedRanks);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < kStartedRanks; ++rank)
      ranks.emplace_back([&, rank] {
        LaunchEnv launch;
        launch.rank = Rank(static_cast<std::size_t>(rank));
        launch.world_size = launch.local_world_size = kStartedRanks;
        launch.local_rank = rank;
        launch.master_port = port;
        auto gloo = connect_gloo(launch, {});
        const torch::Device device = queued_device(rank);
        std::unique_ptr<Transport> transport;
        if (devices) {
          const DeviceCalls calls = device_calls(
              *gloo, device,
              [&](const auto&, const std::string& name, int index, int size) {
                return queued_family(std::to_string(port) + name, index, size, device);
              },
              queued_together);
          transport = std::make_unique<DeviceTransport>(std::move(gloo), calls, false);
        } else {
          transport = std::move(gloo);
        }
        transport->barrier();
        const Seconds begin = steady_now();
        const auto groups = made(*transport, announced);
        if (devices && !announced)
          check_sums(*transport, device, groups);  // the groups connect at their first call
        took[static_cast<std::size_t>(rank)] = (steady_now() - begin).count();
        transport->barrier();
        if (devices) wait_idle(device);
      });
  }
  return *std::max_element(took.begin(), took.end());
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "30 groups on each of 8 ranks need one host wait per group plus three, and none in their "
      "calls") {
    // Waits: joining the world, one split per round, all first sums together, all first exchanges.
    on_devices(kStartedRanks, false, [](Transport& transport, torch::Device device) {
      const auto groups = made(transport, true);
      CHECK(chain_of_host_waits() == 1 + kGroups + 2);
      check_sums(transport, device, groups);
      // The same for an all-to-all of a group that exchanges rows.
      Tensor send = torch::ones({8}, device), receive = torch::zeros({8}, device);
      groups[5]->all_to_all(send, receive, std::vector<std::int64_t>(8, 1),
                            std::vector<std::int64_t>(8, 1));
      CHECK(receive.sum().item<float>() == 8);
      CHECK(chain_of_host_waits() == 1 + kGroups + 2);
    });
  }

  TEST_CASE("groups that were not announced need four host waits each, one after another") {
    on_devices(kStartedRanks, false, [](Transport& transport, torch::Device device) {
      const auto groups = made(transport, false);
      CHECK(chain_of_host_waits() == 0);
      check_sums(transport, device, groups);
      CHECK(chain_of_host_waits() == 4 * kGroups);
    });
  }

  TEST_CASE("the messages of a pipeline of 8 stages need three host waits, and none later") {
    on_devices(kStartedRanks, false, [](Transport& transport, torch::Device device) {
      const std::size_t me = transport.rank().value;
      std::vector<Channel> channels;
      for (std::size_t other = 0; other < kStartedRanks; ++other) {
        const std::size_t first = std::min(me, other), second = std::max(me, other);
        if (second - first != 1) continue;
        channels.push_back({Rank(second), Rank(first)});
        channels.push_back({Rank(first), Rank(second)});
      }
      std::sort(channels.begin(), channels.end());
      transport.prepare(channels);
      CHECK(chain_of_host_waits() == 3);
      Tensor number = torch::full({1}, static_cast<float>(me), device);
      if (me > 0) transport.exchange({{number, Rank(me - 1), 1, false}});
      if (me + 1 < kStartedRanks) {
        const Tensor next = number + 1;
        transport.exchange({{next, Rank(me + 1), 1, true}});
      }
      CHECK(number.item<float>() == static_cast<float>(me));
      transport.prepare(channels);
      CHECK(chain_of_host_waits() == 3);
    });
  }

  TEST_CASE("ranks that disagree on a group all report it before any waits for another") {
    on_devices(3, false, [](Transport& transport, torch::Device) {
      const std::vector<Rank> all{Rank(0), Rank(1), Rank(2)};
      std::vector<NamedGroup> mine{{"all", all}};
      if (transport.rank() != Rank(1)) mine.push_back({"some", all});
      CHECK_THROWS_WITH_AS(announce(transport, mine),
                           doctest::Contains("group some of ranks 0 1 2: rank 1 does not make it"),
                           InternalError);
      // Afterwards they can agree.
      announce(transport, {{"all again", all}});
    });
  }

  TEST_CASE("announcements agree whatever their order, and mistakes in them are named") {
    const std::vector<Rank> pair{Rank(0), Rank(1)}, other{Rank(2), Rank(1)};
    const auto agree = [&](const std::vector<std::vector<NamedGroup>>& lists) {
      std::vector<std::string> texts;
      for (std::size_t rank = 0; rank < lists.size(); ++rank)
        texts.push_back(announcement(Rank(rank), lists[rank]));
      return agreed_groups(texts);
    };
    const auto all = agree({{{"a", pair}}, {{"b", other}, {"a", pair}}, {{"b", other}}});
    REQUIRE(all.size() == 2);
    CHECK(all[0].name == "a");
    CHECK((all[0].members == pair));
    CHECK(all[1].name == "b");
    CHECK((all[1].members == other));
    CHECK(agree({{}, {}}).empty());
    CHECK_THROWS_WITH(agree({{{"a", pair}}, {}, {}}),
                      doctest::Contains("group a of ranks 0 1: rank 1 does not make it"));
    CHECK_THROWS_WITH(agree({{{"a", pair}}, {{"a", pair}}, {{"a", pair}}}),
                      doctest::Contains("rank 2 makes it but is not a member"));
    CHECK_THROWS_WITH(agree({{{"a", {Rank(0), Rank(5)}}}, {}}), doctest::Contains("not below 2"));
  }

  TEST_CASE("a family's split is an error if members differ in color, group or number") {
    const Seconds soon(0.2), late(60);
    const DevicePart none{-1, {}, 0, 1}, absent;
    const auto part = [](int color, const std::string& name, int index) {
      return DevicePart{color, name, index, 2};
    };
    for (const std::string& text :
         said({part(0, "a", 0), part(0, "a", 1), part(1, "b", 0), part(1, "b", 1)}, late))
      CHECK(text == "");
    CHECK(said({part(0, "a", 0), none, part(0, "a", 1)}, late)[2] == "");
    for (const std::string& text : said({part(0, "a", 0), part(1, "a", 1)}, late))
      CHECK(text.find("a has 1 members instead of 2") != std::string::npos);
    for (const std::string& text : said({part(0, "a", 0), part(0, "b", 1)}, late))
      CHECK(text.find("member 1 makes b, member 0 a with the same color") != std::string::npos);
    for (const std::string& text : said({part(0, "a", 0), absent, absent}, soon))
      CHECK(text.find("split 1: without 1 2") != std::string::npos);
  }

  // build/release/exec_test --no-skip -tc="time to start*"
  TEST_CASE("time to start 30 groups of each of 8 ranks" * doctest::skip()) {
    for (const double wait_ms : {0.0, 5.0, 20.0}) {
      delay_host_waits(Seconds(wait_ms / 1e3));
      const double together = start_over_gloo(true, true), each = start_over_gloo(true, false);
      delay_host_waits(Seconds(0));
      std::cout << "waits of " << wait_ms << " ms: announced " << together << " s, each for itself "
                << each << " s" << std::endl;
    }
    std::cout << "of that, the host's groups over Gloo: " << start_over_gloo(false, false) << " s"
              << std::endl;
  }
}

}  // namespace polyphony::exec::testing
