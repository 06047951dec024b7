// Not a test: times collectives and messages between this machine's GPUs, or over Gloo where there
// are none. Run by scripts/first_gpu_hour, part collectives.
//
// Prints one line for each operation and size: "collective,OPERATION,RANKS,BYTES,SECONDS,BANDWIDTH".
// Bytes are those of the whole tensor: of an all-to-all what one rank sends, of a message its own.
// Seconds are the median of rounds of queued calls, by rank 0's clock. The bandwidth in bytes per
// second is what nccl-tests calls busbw, comparable with that of a link (doc/PERFORMANCE.md there).
//
// POLYPHONY_RANKS: number of ranks (absent: one for each GPU, 2 to 8). POLYPHONY_LARGEST_BYTES: the
// largest size (absent: 1 GiB).
#include <torch/cuda.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "exec/on_device.h"
#include "exec/system/process.h"
#include "exec/transport/announcing.h"
#include "exec/transport/staged.h"
#include "tests/exec/transport/rank_processes.h"

namespace polyphony::exec {

namespace {

std::int64_t number_or(const char* variable, std::int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoll(text);
}

class Table {
 public:
  Table(Transport& transport, torch::Device device)
      : transport_(transport), device_(device), ranks_(transport.world_size()) {
    announce(transport, {{"table", everyone(transport), true}});
    group_ = transport.make_group("table", everyone(transport));
    transport.prepare(neighbors());
  }

  void rows(std::int64_t bytes) {
    const std::int64_t part = bytes / 4 / ranks_, all = part * ranks_;
    const auto format = torch::dtype(torch::kFloat32).device(device_);
    torch::Tensor whole = torch::zeros({all}, format), mine = torch::zeros({part}, format);
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks_), part);
    const double n = ranks_;
    row("all_reduce", whole, 2 * (n - 1) / n, [&] { group_->all_reduce(whole, Reduction::sum); });
    row("all_gather", whole, (n - 1) / n, [&] { group_->all_gather(mine, whole, counts); });
    row("reduce_scatter", whole, (n - 1) / n, [&] { group_->reduce_scatter(whole, mine, counts); });
    {
      torch::Tensor received = torch::zeros_like(whole);
      row("all_to_all", whole, (n - 1) / n,
          [&] { group_->all_to_all(whole, received, counts, counts); });
    }
    // There and back between ranks 0 and 1.
    row("message", whole, 1, [&] { there_and_back(whole); }, 2);
  }

 private:
  std::vector<Channel> neighbors() const {
    std::vector<Channel> channels;
    if (transport_.rank().value < 2) channels = {{Rank(0u), Rank(1u)}, {Rank(1u), Rank(0u)}};
    return channels;
  }
  void there_and_back(const torch::Tensor& tensor) {
    const std::uint32_t self = transport_.rank().value;
    if (self > 1) return;
    for (const bool first : {true, false})
      transport_.exchange({{tensor, Rank(1 - self), first ? 1u : 2u, first == (self == 0)}});
  }
  // Waits for what is queued on the current stream.
  void finish() {
    if (device_.is_cpu()) return;
    c10::Event end(device_.type());
    end.record(current_stream(device_));
    transport_.await(end);
  }
  void row(const std::string& operation, const torch::Tensor& tensor, double factor,
           const std::function<void()>& call, int calls_in_one = 1) {
    // Small calls many times, so that the wait for their end is a small part.
    constexpr std::int64_t kMoved = std::int64_t{64} << 20;
    constexpr int kRounds = 5;
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    const std::int64_t calls = std::clamp<std::int64_t>(kMoved / bytes, 2, 20);
    call();
    finish();
    std::vector<double> seconds;
    for (int round = 0; round < kRounds; ++round) {
      transport_.barrier();
      const Seconds begin = steady_now();
      for (std::int64_t i = 0; i < calls; ++i) call();
      finish();
      seconds.push_back((steady_now() - begin).count() / static_cast<double>(calls * calls_in_one));
    }
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[kRounds / 2];
    if (transport_.rank() == Rank(0))
      std::cout << "collective," << operation << "," << ranks_ << "," << bytes << "," << median
                << "," << factor * static_cast<double>(bytes) / median << std::endl;
  }

  Transport& transport_;
  torch::Device device_;
  int ranks_;
  std::unique_ptr<Communicator> group_;
};

void print_table(Transport& transport, torch::Device device) {
  const torch::NoGradGuard no_grad;
  Table table(transport, device);
  const std::int64_t largest = number_or("POLYPHONY_LARGEST_BYTES", std::int64_t{1} << 30);
  for (std::int64_t bytes = 1024; bytes <= largest; bytes *= 4) table.rows(bytes);
}

const bool kRole = add_device_role("table of collectives", print_table);

}  // namespace

TEST_SUITE("machine's GPUs") {
  TEST_CASE("table of collectives" * doctest::skip()) {
    REQUIRE(kRole);
    constexpr Seconds kLimit{55};  // below the 60 s that scripts/first_gpu_hour gives a process
    const auto ranks = static_cast<int>(
        number_or("POLYPHONY_RANKS", std::clamp<std::int64_t>(torch::cuda::device_count(), 2, 8)));
    const auto results = run_rank_processes("table of collectives", ranks, kLimit);
    std::cout << results.front().output << std::flush;
    for (const RankResult& result : results) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }
}

}  // namespace polyphony::exec
