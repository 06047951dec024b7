#include "traces/kineto/ranks.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "tests/traces/kineto/made.h"
#include "traces/kineto/summary.h"

using namespace polyphony;
using namespace polyphony::traces;
using namespace std::chrono_literals;

namespace {

constexpr const char* kSum =
    R"(, "Collective name": "allreduce", "In msg nelems": 1000000, "Out msg nelems": 1000000,
       "Group size": 2, "dtype": "Float", "Process Group Description": "dp", "Process Group Ranks": "[0, 1]")";

// Two steps of 1,000 us, each with a GEMM of `busy` us and an all-reduce that ends at 800 us (plus
// `late`) on both ranks.
std::string rank_file(int rank, double busy, double late, int first_step = 5, int world = 2,
                      const std::string& base = "1700000000000000000") {
  std::vector<std::string> events;
  for (int step = 0; step < 2; ++step) {
    const double at = 1000.0 * step;
    events.push_back(made::step(first_step + step, at, 1000));
    events.push_back(made::kernel("nvjet", at + 1, at + 50, busy, 7, 10 * step + 1));
    const double begin = at + 50 + busy;
    events.push_back(made::kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", at + 5, begin + late,
                                  at + 800 - begin, 20, 10 * step + 2, kSum));
  }
  return made::file(events, made::head(rank, world, base));
}
DeviceTrace trace(int rank, double busy, double late = 0) {
  return made::read(rank_file(rank, busy, late), "rank-" + std::to_string(rank) + ".json");
}

void check_ranks_refused(std::vector<DeviceTrace> traces, const std::string& wanted) {
  try {
    rank_set(std::move(traces));
    FAIL_CHECK("put together: " << wanted);
  } catch (const InputError& error) {
    CHECK_MESSAGE(std::string(error.what()).find(wanted) != std::string::npos, error.what());
  }
}

}  // namespace

TEST_CASE("the slow rank has the most work, and others wait for it in collectives") {
  const RankSet ranks = rank_set({trace(1, 700), trace(0, 400)});
  CHECK(ranks.traces[0].rank == 0);
  CHECK(ranks.matched == 2);
  CHECK(ranks.last_in == std::vector<std::int64_t>{0, 2});
  const auto slow = slow_rank(ranks);
  REQUIRE(slow);
  CHECK(slow->rank == 1);
  CHECK(slow->busy == 700us);
  CHECK(slow->median == 400us);
  CHECK(ranks.notes.empty());
  CHECK_FALSE(slow_rank(rank_set({trace(0, 400)})));
}

// From the last event of a step, at 800, to the next one's first, at 1,050.
TEST_CASE("the gap between two steps") {
  const RankSet ranks = rank_set({trace(0, 400)});
  REQUIRE(ranks.times[0].steps.size() == 2);
  CHECK(ranks.times[0].steps[0].gap == 250us);
  CHECK_FALSE(ranks.times[0].steps[1].gap);
}

// 4 MB among 2 ranks: the median, 350 us, gives 11.4 GB/s, times 2 · 1/2 for the bus; the shortest,
// 50 us, gives 80.
TEST_CASE("bus bandwidth of a collective: median, and the kernel that waited least") {
  const RankSet ranks = rank_set({trace(0, 400), trace(1, 700)});
  const auto rows = collective_rows(ranks);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].count == 4);
  CHECK(rows[0].median == 350us);
  CHECK(rows[0].bus->value == doctest::Approx(4e6 / 350e-6));
  CHECK(rows[0].best_bus->value == doctest::Approx(4e6 / 50e-6));
}

TEST_CASE("a clock that is ahead is found by collectives that end together, and corrected") {
  const RankSet ranks = rank_set({trace(0, 400), trace(1, 700, 2500)});
  // Its origin, the annotation of the first step, is unchanged: only the kernels are late. On a
  // common clock the ends agree: 800 us after rank 0's origin.
  CHECK(ranks.clocks[1].moved);
  CHECK(ranks.clocks[1].matched == 2);
  const auto end = [&](std::size_t rank) {
    Nanoseconds last{};
    for (const DeviceEvent& event : ranks.traces[rank].events)
      last = std::max(last, event.end() + ranks.clocks[rank].shift);
    return last;
  };
  CHECK(end(0) == end(1));
  REQUIRE(ranks.notes.size() == 1);
  CHECK(ranks.notes[0].find("rank 1 is 2.50 ms ahead of that of rank 0") != std::string::npos);
}

TEST_CASE("files that do not belong together are rejected") {
  check_ranks_refused({trace(0, 400), trace(0, 500)}, "rank 0 is also in");
  check_ranks_refused({trace(0, 400), made::read(rank_file(1, 400, 0, 5, 4))},
                      "is of a job with 4 ranks");
  check_ranks_refused({trace(0, 400), made::read(rank_file(1, 400, 0, 50))},
                      "(from 50) do not occur in");
  check_ranks_refused(
      {trace(0, 400), made::read(rank_file(1, 400, 0, 5, 2, "1700090000000000000"))},
      "was recorded");
  check_ranks_refused({made::read(rank_file(2, 400, 0))}, "rank 2 does not exist among 2");
  DeviceTrace unranked = trace(1, 400);
  unranked.rank.reset();
  check_ranks_refused({trace(0, 400), unranked}, "the rank of the trace is unknown");
}
