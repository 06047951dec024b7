#include "tests/exec/transport/transport_behaviour.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "tests/exec/transport/rank_processes.h"

namespace polyphony::exec {

namespace {

torch::Tensor ramp(std::int64_t count, torch::Dtype dtype) {
  return (torch::arange(count, torch::kInt64) % 7 + 1).to(dtype);
}

Rank shifted(const Transport& transport, int by) {
  const int size = transport.world_size();
  return Rank(
      static_cast<std::size_t>((static_cast<int>(transport.rank().value) + by + size) % size));
}

// Runs the jobs at the same time; rethrows the first exception.
void at_once(const std::vector<std::function<void()>>& jobs) {
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (const auto& job : jobs) {
      threads.emplace_back([&mutex, &first, &job] {
        try {
          job();
        } catch (...) {
          const std::scoped_lock lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

// Rank r holds (r + 1)·w with w in 1..7: the sum is n(n+1)/2·w (at most 252: exact even in
// bfloat16), the maximum n·w.
void adds_and_finds_maxima(Transport& transport) {
  const auto group = transport.make_group("sums", everyone(transport));
  const std::int64_t ranks = transport.world_size();
  for (const torch::Dtype dtype :
       {torch::kFloat32, torch::kFloat64, torch::kBFloat16, torch::kInt64}) {
    for (const std::int64_t count : {1, 3, 1000, 5000, 100003}) {
      const torch::Tensor weights = ramp(count, dtype);
      torch::Tensor sum = weights * (static_cast<std::int64_t>(transport.rank().value) + 1);
      torch::Tensor maximum = sum.clone();
      group->all_reduce(sum, Reduction::sum);
      group->all_reduce(maximum, Reduction::max);
      const std::string which = std::string(torch::toString(dtype)) + " × " + std::to_string(count);
      require(torch::equal(sum, weights * (ranks * (ranks + 1) / 2)), "sum of " + which);
      require(torch::equal(maximum, weights * ranks), "maximum of " + which);
    }
  }
}

// x == max over ranks of x == -(max over ranks of -x) holds only when all ranks have the same x.
void gives_all_the_same_bits(Transport& transport) {
  const auto group = transport.make_group("bits", everyone(transport));
  for (const std::int64_t count : {17, 3000, 40000}) {
    auto generator = at::detail::createCPUGenerator(transport.rank().value + 1);
    torch::Tensor first = torch::randn({count}, generator, torch::kFloat32);
    torch::Tensor again = first.clone();
    group->all_reduce(first, Reduction::sum);
    group->all_reduce(again, Reduction::sum);
    require(torch::equal(first, again), "the same sum twice");
    torch::Tensor highest = first.clone();
    torch::Tensor lowest = -first;
    group->all_reduce(highest, Reduction::max);
    group->all_reduce(lowest, Reduction::max);
    require(torch::equal(first, highest) && torch::equal(first, -lowest),
            "the same sum on all ranks");
  }
}

// Three groups, each from its own thread: all ranks, all ranks backwards, and halves by parity.
void runs_several_groups_at_once(Transport& transport) {
  const std::vector<Rank> all = everyone(transport);
  const std::vector<Rank> backwards(all.rbegin(), all.rend());
  const std::uint32_t parity = transport.rank().value % 2;
  std::vector<Rank> half;
  for (const Rank rank : all) {
    if (rank.value % 2 == parity) half.push_back(rank);
  }
  struct Case {
    std::string name;
    std::vector<Rank> members;
  };
  std::vector<std::function<void()>> jobs;
  std::vector<std::unique_ptr<Communicator>> groups;
  for (const Case& each : {Case{"all", all}, Case{"backwards", backwards},
                           Case{"half " + std::to_string(parity), half}}) {
    groups.push_back(transport.make_group(each.name, each.members));
    Communicator& group = *groups.back();
    require(group.size() == static_cast<int>(each.members.size()), "group size");
    require(each.members[static_cast<std::size_t>(group.index())] == transport.rank(),
            "group index");
    jobs.emplace_back([&group, members = each.members, self = transport.rank()] {
      double expected = 0;
      for (const Rank rank : members) expected += rank.value + 1.0;
      for (int round = 0; round < 20; ++round) {
        torch::Tensor sum = torch::full({100 * (round + 1)}, self.value + 1.0, torch::kFloat64);
        group.all_reduce(sum, Reduction::sum);
        require(sum.min().item<double>() == expected && sum.max().item<double>() == expected,
                "group sum");
      }
    });
  }
  at_once(jobs);
}

// To the next rank and from the one before: eight messages, sent in one order, received in the
// opposite one, in one exchange and from threads of their own.
void matches_tags_in_any_order(Transport& transport) {
  const Rank next = shifted(transport, 1), previous = shifted(transport, -1);
  constexpr std::uint64_t kMessages = 8;
  const auto payload = [](Rank rank, std::uint64_t tag) {
    return torch::full({static_cast<std::int64_t>(tag * 100 + 1)},
                       rank.value * 10.0 + static_cast<double>(tag));
  };
  std::vector<Transfer> transfers;
  for (std::uint64_t tag = 0; tag < kMessages; ++tag) {
    transfers.push_back(
        {.tensor = payload(transport.rank(), tag), .peer = next, .tag = tag, .sends = true});
  }
  for (std::uint64_t tag = kMessages; tag-- > 0;) {
    transfers.push_back(
        {.tensor = torch::zeros_like(payload(previous, tag)), .peer = previous, .tag = tag});
  }
  transport.exchange(transfers);
  for (const Transfer& transfer : transfers) {
    if (!transfer.sends)
      require(torch::equal(transfer.tensor, payload(previous, transfer.tag)), "payload");
  }
  std::vector<std::function<void()>> jobs;
  for (std::uint64_t tag = 0; tag < kMessages; ++tag) {
    jobs.emplace_back([&, tag] { transport.send(payload(transport.rank(), tag), next, tag); });
  }
  jobs.emplace_back([&] {
    for (std::uint64_t tag = kMessages; tag-- > 0;) {
      torch::Tensor got = torch::zeros_like(payload(previous, tag));
      transport.receive(got, previous, tag);
      require(torch::equal(got, payload(previous, tag)), "payload from a thread");
    }
  });
  at_once(jobs);
}

// One thread, send before receive: must not block. And a receive that waits for a send of another
// thread.
void sends_to_itself(Transport& transport) {
  torch::Tensor sent = torch::arange(10, torch::kFloat64);
  torch::Tensor got = torch::zeros({10}, torch::kFloat64);
  transport.send(sent, transport.rank(), 5);
  sent.zero_();  // the message was taken at the send
  transport.receive(got, transport.rank(), 5);
  require(torch::equal(got, torch::arange(10, torch::kFloat64)), "message to itself");
  torch::Tensor late = torch::zeros({10}, torch::kFloat64);
  at_once({[&] { transport.receive(late, transport.rank(), 6); },
           [&] {
             std::this_thread::sleep_for(std::chrono::milliseconds(5));
             transport.send(got, transport.rank(), 6);
           }});
  require(torch::equal(late, got), "message to a thread of itself");
}

void moves_nothing(Transport& transport) {
  const auto group = transport.make_group("nothing", everyone(transport));
  torch::Tensor empty = torch::zeros({0, 8});
  group->all_reduce(empty, Reduction::sum);
  transport.exchange({});
  transport.exchange({{.tensor = empty, .peer = shifted(transport, 1), .tag = 1, .sends = true},
                      {.tensor = empty, .peer = shifted(transport, -1), .tag = 1, .sends = false}});
  transport.send(empty, transport.rank(), 2);
  transport.receive(empty, transport.rank(), 2);
  transport.barrier();
}

// Four threads per rank, each a ring of its own: rank r passes r's number on to r + 1, with sizes
// around the transports' limits. One thread if the transport matches messages by their order.
void serves_several_threads(Transport& transport) {
  const Rank next = shifted(transport, 1), previous = shifted(transport, -1);
  std::vector<std::function<void()>> jobs;
  const std::uint64_t threads = transport.queues() ? 1 : 4;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    jobs.emplace_back([&, thread] {
      for (std::int64_t round = 0; round < 20; ++round) {
        const std::int64_t count = 1 + round * 1000 * static_cast<std::int64_t>(thread);
        const torch::Tensor sent =
            torch::full({count}, transport.rank().value + 0.25 * static_cast<double>(round));
        torch::Tensor got = torch::zeros({count});
        transport.exchange({{.tensor = sent, .peer = next, .tag = thread, .sends = true},
                            {.tensor = got, .peer = previous, .tag = thread, .sends = false}});
        require(torch::equal(
                    got, torch::full({count}, previous.value + 0.25 * static_cast<double>(round))),
                "ring message");
      }
    });
  }
  at_once(jobs);
}

// From rank 0 to each other, posted before and after it is asked for, twice under one key.
void posts_letters(Transport& transport) {
  const auto letter = [](int round, Rank rank) {
    std::string text = std::to_string(round) + std::string(1, '\0') + std::to_string(rank.value);
    return text + std::string(static_cast<std::size_t>(round) * 100'000, 'x');
  };
  const auto key = [](Rank rank) { return "letter/" + std::to_string(rank.value); };
  for (int round = 0; round < 3; ++round) {
    if (transport.rank() == Rank(0)) {
      for (const Rank rank : everyone(transport))
        if (rank != Rank(0)) transport.post(key(rank), letter(round, rank));
    } else {
      if (round == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      require(transport.fetch(key(transport.rank())) == letter(round, transport.rank()), "letter");
    }
    transport.barrier();
  }
}

void all_behaviours(Transport& transport) {
  adds_and_finds_maxima(transport);
  gives_all_the_same_bits(transport);
  runs_several_groups_at_once(transport);
  if (!transport.queues()) matches_tags_in_any_order(transport);
  sends_to_itself(transport);
  moves_nothing(transport);
  serves_several_threads(transport);
  gathers_unequal_parts(transport);
  scatters_sums_in_group_order(transport);
  exchanges_all_to_all(transport);
  collects_nothing(transport);
  posts_letters(transport);
  transport.barrier();
}

}  // namespace polyphony::exec
