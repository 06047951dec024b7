// Gather, scatter and all-to-all on any transport. The results are compared bit by bit with a plain
// computation from all members' inputs, which every rank can generate. So they are equal on all
// transports.
#include <array>
#include <numeric>
#include <string>

#include "tests/exec/transport/rank_processes.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec {

namespace {

using Counts = std::vector<std::int64_t>;
using torch::Tensor;

constexpr std::int64_t kMost = 2'200'001;
constexpr std::array kTypes{torch::kFloat32, torch::kFloat64, torch::kBFloat16, torch::kInt64};

// Backwards, so that group order is not rank order.
std::unique_ptr<Communicator> backwards(Transport& transport, const std::string& name) {
  std::vector<Rank> ranks;
  for (int rank = transport.world_size(); rank-- > 0;)
    ranks.emplace_back(static_cast<std::size_t>(rank));
  return transport.make_group(name, ranks);
}

std::int64_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// What a member holds: numbers of many magnitudes, so that the order of a sum shows.
Tensor data(int member, std::int64_t count, torch::Dtype dtype) {
  static const Tensor numbers = [] {
    auto generator = at::detail::createCPUGenerator(7);
    const Tensor plain = torch::randn({kMost + 1000}, generator, torch::kFloat64);
    const Tensor scale = torch::randint(-12, 12, {kMost + 1000}, generator, torch::kFloat64);
    return plain * scale.exp2() * 100;
  }();
  return numbers.narrow(0, member * 101, count).to(dtype, false, true);
}

// One after the other; bfloat16 in float, rounded at the end.
Tensor sum_in_order(int members, std::int64_t count, torch::Dtype dtype) {
  const torch::Dtype wide = dtype == torch::kBFloat16 ? torch::kFloat32 : dtype;
  Tensor total = data(0, count, dtype).to(wide);
  for (int member = 1; member < members; ++member) total += data(member, count, dtype).to(wide);
  return total.to(dtype);
}

Tensor part_of(const Tensor& whole, const Counts& counts, int member) {
  const std::int64_t begin = sum(Counts(counts.begin(), counts.begin() + member));
  return whole.narrow(0, begin, counts[static_cast<std::size_t>(member)]);
}

// Even, uneven with a zero, nothing from all but the last, over the in-process transport's limits,
// and (once: it is slow) over Gloo's.
std::vector<Counts> shapes(int members, torch::Dtype dtype) {
  const auto size = static_cast<std::size_t>(members);
  Counts even(size, 5), uneven(size), last(size, 0), large(size), huge(size, 0);
  for (std::size_t m = 0; m < size; ++m) {
    const auto i = static_cast<std::int64_t>(m);
    uneven[m] = i * 37 % 5 == 0 ? 0 : i * 111 + 1;
    large[m] = 20'000 + i;
  }
  last.back() = 3;
  huge.front() = kMost;
  std::vector<Counts> all{even, uneven, last, large};
  if (dtype == torch::kFloat64) all.push_back(huge);
  return all;
}

}  // namespace

void gathers_unequal_parts(Transport& transport) {
  const auto group = backwards(transport, "gather");
  for (const torch::Dtype dtype : kTypes) {
    for (const Counts& counts : shapes(group->size(), dtype)) {
      std::vector<Tensor> expected;
      for (int member = 0; member < group->size(); ++member)
        expected.push_back(data(member, counts[static_cast<std::size_t>(member)], dtype));
      const Tensor& mine = expected[static_cast<std::size_t>(group->index())];
      Tensor all = torch::zeros({sum(counts)}, dtype);
      group->all_gather(mine, all, counts);
      require(torch::equal(all, torch::cat(expected)), "all-gather");
      all.zero_();
      const Tensor place = part_of(all, counts, group->index());
      place.copy_(mine);
      group->all_gather(place, all, counts);
      require(torch::equal(all, torch::cat(expected)), "all-gather in place");
    }
  }
}

void scatters_sums_in_group_order(Transport& transport) {
  const auto group = backwards(transport, "scatter");
  for (const torch::Dtype dtype : kTypes) {
    for (const Counts& counts : shapes(group->size(), dtype)) {
      const Tensor whole = sum_in_order(group->size(), sum(counts), dtype);
      const Tensor expected = part_of(whole, counts, group->index());
      Tensor all = data(group->index(), sum(counts), dtype);
      Tensor mine = torch::zeros_like(expected);
      group->reduce_scatter(all, mine, counts);
      require(torch::equal(mine, expected), "reduce-scatter");
      require(torch::equal(all, data(group->index(), sum(counts), dtype)), "its input is kept");
      Tensor place = part_of(all, counts, group->index());
      group->reduce_scatter(all, place, counts);
      require(torch::equal(place, expected), "reduce-scatter in place");
      group->all_gather(place, all, counts);
      require(torch::equal(all, whole), "a reduce-scatter and an all-gather are an all-reduce");
      Tensor reduced = data(group->index(), sum(counts), dtype);
      group->all_reduce(reduced, Reduction::sum);
      require(torch::equal(reduced, whole), "all-reduce in group order");
    }
  }
}

// Member i sends (7 i + 3 j) mod 5 elements (times 40,000 in the second round: over the limits) to
// member j, numbered from 100 i + 10 j on.
void exchanges_all_to_all(Transport& transport) {
  const auto group = backwards(transport, "all to all");
  const int self = group->index();
  for (const torch::Dtype dtype : kTypes) {
    for (const std::int64_t scale : {1, 40'000}) {
      Counts out, in;
      std::vector<Tensor> sent, expected;
      const auto payload = [&](int from, int to, Counts& counts) {
        counts.push_back((7 * from + 3 * to) % 5 * scale);
        return (torch::arange(counts.back(), torch::kInt64) % 10 + (100 * from + 10 * to))
            .to(dtype);
      };
      for (int member = 0; member < group->size(); ++member) {
        sent.push_back(payload(self, member, out));
        expected.push_back(payload(member, self, in));
      }
      const Tensor send = torch::cat(sent);
      Tensor receive = torch::zeros({sum(in)}, dtype);
      group->all_to_all(send, receive, out, in);
      require(torch::equal(receive, torch::cat(expected)), "all-to-all");
    }
  }
}

// Nothing at all, from everyone and to everyone, between collectives that move something.
void collects_nothing(Transport& transport) {
  const auto group = backwards(transport, "empty parts");
  const Counts zeros(static_cast<std::size_t>(group->size()), 0);
  for (int round = 0; round < 3; ++round) {
    Tensor empty = torch::zeros({0}), other = torch::zeros({0});
    group->all_gather(empty, other, zeros);
    group->reduce_scatter(empty, other, zeros);
    group->all_to_all(empty, other, zeros, zeros);
    Tensor one = torch::ones({1});
    group->all_reduce(one, Reduction::sum);
    require(one.item<float>() == static_cast<float>(group->size()), "sum after nothing");
  }
}

}  // namespace polyphony::exec
