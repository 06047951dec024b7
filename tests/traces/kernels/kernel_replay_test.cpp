// Traces with all times known by hand, simulated with one change; and the unchanged traces of
// traces/samples.
#include <doctest/doctest.h>

#include <cmath>

#include "shared/error.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/traces/kineto/made.h"
#include "traces/kernels/played_kernels.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

std::string sum_of(int ranks) {
  return R"(, "Collective name": "allreduce", "In msg nelems": 1000000, "Out msg nelems": 1000000, "Group size": )" +
         std::to_string(ranks) +
         R"(, "dtype": "Float", "Process Group Description": "dp", "Process Group Ranks": "[0, 1]")";
}

// One step: a GEMM of duration `busy` from 50 us, then an all-reduce of 4 MB, which ends at `end`.
DeviceTrace rank_trace(int rank, double busy, double end = 800) {
  const std::vector<std::string> events{made::step(0, 0, 1000),
                                        made::kernel("nvjet", 1, 50, busy, 7, 1),
                                        made::kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 5,
                                                     50 + busy, end - 50 - busy, 20, 2, sum_of(2))};
  return made::read(made::file(events, made::head(rank, 2)),
                    "rank-" + std::to_string(rank) + ".json");
}
// Rank 1 enters last, at 750; the transfer takes 50.
RankSet two_ranks() { return rank_set({rank_trace(0, 400), rank_trace(1, 700)}); }

RankSet one_rank(std::vector<std::string> events) {
  events.push_back(made::step(0, 0, 10000));
  return rank_set({made::read(made::file(events, made::head(0, 1)))});
}

Degraded slow(int rank, double device, double link = 1) {
  Degraded one;
  one.rank = rank;
  one.device = device;
  one.link = link;
  return one;
}

// Microseconds of the single step.
double step_of(const RankSet& ranks, const KernelChange& change = {}) {
  const RecordedGraph recorded = recorded_graph(ranks);
  const auto lags = changed_lags(recorded, ranks, change).lags;
  const StepWindows windows = step_windows(recorded.graph, play(recorded.graph, lags));
  REQUIRE(windows.all.size() == 1);
  return windows.all[0].count() * 1e6;
}

void check_refused(const RankSet& ranks, const KernelChange& change, const std::string& wanted) {
  try {
    step_of(ranks, change);
    FAIL_CHECK("replayed: " << wanted);
  } catch (const InputError& error) {
    CHECK_MESSAGE(std::string(error.what()).find(wanted) != std::string::npos, error.what());
  }
}

RankSet samples(const std::vector<std::string>& names) {
  std::vector<DeviceTrace> traces;
  for (const std::string& name : names) {
    const std::string path = "traces/samples/" + name + ".json.gz";
    const std::string bytes = test::file_text(path);
    traces.push_back(read_kineto(bytes_of(bytes), path));
  }
  return rank_set(std::move(traces));
}

}  // namespace

TEST_CASE("kernels: every unchanged sample is reproduced exactly") {
  for (const auto& names :
       std::vector<std::vector<std::string>>{{"nccl_data"},
                                             {"llama_8b_eager"},
                                             {"qwen3_30b_eager"},
                                             {"gpt_7b_tp4_eager"},
                                             {"sampled_rank-0", "sampled_rank-1"}}) {
    CAPTURE(names.front());
    const RankSet ranks = samples(names);
    const RecordedGraph recorded = recorded_graph(ranks);
    const ChangedLags lags = changed_lags(recorded, ranks, {});
    const std::vector<Seconds> times = play(recorded.graph, lags.lags);
    double furthest = 0;
    for (std::size_t point = 0; point < times.size(); ++point)
      furthest = std::max(furthest, std::abs((times[point] - recorded.times[point]).count()));
    CHECK(furthest < 1e-9);
    // Steps of all ranks, and of each rank, are within the required 1 % (and far below).
    const StepWindows measured = step_windows(recorded.graph, recorded.times);
    const StepWindows played = step_windows(recorded.graph, times);
    REQUIRE(measured.all.size() >= 2);
    Seconds sum{};
    for (std::size_t step = 0; step < measured.all.size(); ++step) {
      CHECK(measured.all[step].count() > 0);
      CHECK(played.all[step].count() == doctest::Approx(measured.all[step].count()).epsilon(1e-6));
      sum += played.all[step];
      for (std::size_t rank = 0; rank < ranks.traces.size(); ++rank)
        CHECK(played.ranks[rank][step].count() ==
              doctest::Approx(measured.ranks[rank][step].count()).epsilon(1e-6));
    }
    // The longest path has no gaps: it adds up to the steps.
    Seconds path{};
    for (const KernelPathPiece& piece : longest_path(recorded.graph, ranks, lags.lags, times))
      path += piece.end - piece.start;
    CHECK(path.count() == doctest::Approx(sum.count()).epsilon(1e-9));
    // If all recorded events belong to steps, classes and idle time are those of the record.
    const std::vector<RankTimes> again = played_times(recorded.graph, ranks, times);
    for (std::size_t rank = 0; rank < ranks.traces.size(); ++rank) {
      const auto& windows = recorded.graph.windows[rank];
      if (std::count(windows.begin(), windows.end(), -1) == 0)
        CHECK(again[rank].whole.idle == ranks.times[rank].whole.idle);
    }
  }
}

// Rank 1's GEMM ends at 50 + 350, its all-reduce 50 later; counted from the first kernel's start at
// 50.
TEST_CASE("kernels: a faster class, and waiting for the last rank") {
  const RankSet ranks = two_ranks();
  CHECK(step_of(ranks) == doctest::Approx(750));
  CHECK(step_of(ranks, {.faster = {{"gemm", 2}}}) == doctest::Approx(400));
  CHECK(step_of(ranks, {.faster = {{"compute", 2}}}) == doctest::Approx(400));
  CHECK(step_of(ranks, {.faster = {{"collective", 2}}}) == doctest::Approx(725));
  CHECK(step_of(ranks, {.faster = {{"collective all_reduce dp", 0.5}}}) == doctest::Approx(800));
  // With half the speed, rank 0 ends at 850, after rank 1; rank 1 at 1,450.
  CHECK(step_of(ranks, {.degraded = {slow(0, 0.5)}}) == doctest::Approx(850));
  CHECK(step_of(ranks, {.degraded = {slow(1, 0.5)}}) == doctest::Approx(1450));
}

// NCCL's Simple protocol between two ranks (shared/cost/collective_algorithms.h): 8.4 + 2 hops of
// 3.4 = 15.2 us, and 34.8 us for 2 (2 - 1)/2 · 4 MB: 114.9 GB/s. Other protocols are slower there:
// LL 7.8 + 69.6, LL128 17.8 + 37.8.
TEST_CASE("kernels: links and groups scale the bytes part of transfers by the ratio of the model") {
  const RankSet ranks = two_ranks();
  // 15.2 + 17.4 (LL: 7.8 + 34.8).
  CHECK(step_of(ranks, {.links = 2}) == doctest::Approx(700 + 32.6));
  // 15.2 + 69.6, the slower of two links.
  CHECK(step_of(ranks, {.degraded = {slow(1, 1, 0.5)}}) == doctest::Approx(700 + 84.8));
  // Four: 8.4 + 6 hops of 3.4, and 2 · 3/4 · 4 MB: 28.8 + 52.2 (LL128: 14 + 6 · 1.9 + 56.7).
  CHECK(step_of(ranks, {.groups = {{"dp", 4}}}) == doctest::Approx(700 + 81));
  // Over links twice as fast, LL128 is faster: 14 + 6 · 1.9, and 52.2 / (2 · 0.92); Simple 28.8 +
  // 26.1.
  CHECK(step_of(ranks, {.links = 2, .groups = {{"dp", 4}}}) ==
        doctest::Approx(700 + 25.4 + 52.2 / 1.84));
}

// Only rank 0 of two: its all-reduce takes 350 in the first step, 50 in the second. The time beyond
// 50 is waiting for rank 1, which stays.
TEST_CASE("kernels: waiting for a rank without a trace stays constant, the transfer changes") {
  const std::vector<std::string> events{
      made::step(0, 0, 1000),
      made::kernel("nvjet", 1, 50, 400, 7, 1),
      made::kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 5, 450, 350, 20, 2, sum_of(2)),
      made::step(1, 1000, 1000),
      made::kernel("nvjet", 1001, 1050, 700, 7, 3),
      made::kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 1005, 1750, 50, 20, 4, sum_of(2))};
  const RankSet ranks = rank_set({made::read(made::file(events, made::head(0, 2)))});
  const RecordedGraph recorded = recorded_graph(ranks);
  REQUIRE(recorded.graph.notes.size() >= 1);
  CHECK(recorded.graph.notes[0].find("2 collectives have members that were not recorded") == 0);
  const auto lags = changed_lags(recorded, ranks, {.links = 2}).lags;
  const StepWindows windows = step_windows(recorded.graph, play(recorded.graph, lags));
  // From 50: 400, 300 of waiting, 32.6. Then the host launches the second step at 1,001, as
  // recorded.
  CHECK(windows.all[0].count() * 1e6 == doctest::Approx(732.6));
  CHECK(windows.all[1].count() * 1e6 == doctest::Approx(1750 + 32.6 - (50 + 732.6)));
}

TEST_CASE("kernels: idle time caused by the host stays") {
  const std::string first = made::kernel("nvjet", 10, 20, 100, 7, 1);
  const std::string second = made::kernel("nvjet", 135, 145, 100, 7, 2);
  const KernelChange faster{.faster = {{"gemm", 2}}};
  // The second kernel is launched at 135 in any case: 145 to 195.
  CHECK(step_of(one_rank({first, second})) == doctest::Approx(225));
  CHECK(step_of(one_rank({first, second}), faster) == doctest::Approx(175));
  // The host waits for the first, which ends at 120, returns 5 later and launches 10 after that:
  // 70, 75, 85, 95, 145.
  const std::string sync =
      made::event("cuda_runtime", "cudaDeviceSynchronize", 15, 110, R"("correlation": 9)");
  CHECK(step_of(one_rank({first, second, sync})) == doctest::Approx(225));
  CHECK(step_of(one_rank({first, second, sync}), faster) == doctest::Approx(125));
  // A host that is twice as fast: the second kernel is launched at 10 + 62.5 and started 10 later,
  // but not before 120.
  CHECK(step_of(one_rank({first, second}), {.faster = {{"host", 2}}}) == doctest::Approx(200));
}

// 600 kernels of 10 us, starting at 20, all launched by 310. The next launch begins at 400, when
// 562 are queued, and returns at 532, 2 after the end of the 51st. 8 later a kernel of another
// stream is launched, which starts at 550.
TEST_CASE("kernels: a host blocked by a full launch queue follows the device") {
  std::vector<std::string> events;
  for (int i = 0; i < 600; ++i)
    events.push_back(made::kernel("nvjet", 10 + 0.5 * i, 20 + 10 * i, 10, 7, i + 1));
  events.push_back(
      made::event("cuda_runtime", "cudaLaunchKernel", 400, 132, R"("correlation": 601)"));
  events.push_back(made::event("kernel", "nvjet", 6020, 10,
                               R"("device": 0, "stream": 7, "correlation": 601)", "7"));
  events.push_back(made::kernel("nvjet", 540, 550, 9000, 9, 602));
  const RankSet ranks = one_rank(events);
  CHECK(step_of(ranks) == doctest::Approx(9530));
  // The 51st ends at 275: the launch returns at 402, the kernel of the other stream is launched at
  // 410 and runs from 420.
  CHECK(step_of(ranks, {.faster = {{"gemm", 2}}}) == doctest::Approx(4900));
}

TEST_CASE("kernels: consecutive kernels on a stream are fused") {
  const auto one = [](const char* kernel, double launched, double at, double lasts, int number) {
    return made::kernel(kernel, launched, at, lasts, 7, number);
  };
  constexpr const char* kElementwise = "void at::native::vectorized_elementwise_kernel<4>()";
  // Of 30, 20 and 10 us the longest remains: 100 + 30 + 100.
  const RankSet queued =
      one_rank({one("nvjet", 10, 20, 100, 1), one(kElementwise, 11, 120, 30, 2),
                one(kElementwise, 12, 150, 20, 3), one(kElementwise, 13, 170, 10, 4),
                one("nvjet", 14, 180, 100, 5)});
  CHECK(step_of(queued) == doctest::Approx(260));
  CHECK(step_of(queued, {.fused = {"elementwise"}}) == doctest::Approx(230));
  // The host launches one kernel every 100 us: two launches fewer save 200 us.
  const RankSet launched =
      one_rank({one("nvjet", 10, 20, 5, 1), one(kElementwise, 110, 120, 5, 2),
                one(kElementwise, 210, 220, 5, 3), one(kElementwise, 310, 320, 5, 4),
                one("nvjet", 410, 420, 5, 5)});
  CHECK(step_of(launched) == doctest::Approx(405));
  CHECK(step_of(launched, {.fused = {"elementwise"}}) == doctest::Approx(205));
}

// A copy from 20 to 220 on stream 9, a kernel on stream 7 from 225 on, launched long before: it
// waited for the copy.
TEST_CASE("kernels: a wait for another stream is inferred if nothing else explains the start") {
  const std::string copy =
      made::event("cuda_runtime", "cudaMemcpyAsync", 5, 2, R"("correlation": 1)") + ",\n" +
      made::event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, 200,
                  R"("device": 0, "stream": 9, "bytes": 1000, "correlation": 1)", "9");
  const RankSet ranks = one_rank({copy, made::kernel("nvjet", 10, 225, 100, 7, 2)});
  CHECK(step_of(ranks) == doctest::Approx(305));
  CHECK(step_of(ranks, {.faster = {{"to_device", 2}}}) == doctest::Approx(205));
  CHECK(step_of(ranks, {.faster = {{"memory", 2}}}) == doctest::Approx(205));
}

// A copy from 50 to 150 on stream 9; a kernel on stream 7, launched at 190, from 200 on. It was
// told to wait for the copy, which had already ended: only the record shows this. If the copy lasts
// until 250, the kernel waits for it.
TEST_CASE("kernels: recorded waits between streams apply even if no waiting was visible") {
  const std::string copy =
      made::event("cuda_runtime", "cudaMemcpyAsync", 5, 2, R"("correlation": 1)") + ",\n" +
      made::event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50, 100,
                  R"("device": 0, "stream": 9, "bytes": 1000, "correlation": 1)", "9");
  const std::string kernel = made::kernel("nvjet", 190, 200, 100, 7, 2);
  const std::string wait =
      made::event("cuda_runtime", "cudaEventRecord", 10, 1, R"("correlation": 3)") + ",\n" +
      made::event("cuda_runtime", "cudaStreamWaitEvent", 180, 1, R"("correlation": 4)") + ",\n" +
      made::event("cuda_sync", "Stream Wait Event", 180, 0,
                  R"("stream": 7, "correlation": 4, "device": 0, "wait_on_stream": 9,
                     "wait_on_cuda_event_record_corr_id": 3, "wait_on_cuda_event_id": 1)");
  const KernelChange slower{.faster = {{"to_device", 0.5}}};
  CHECK(step_of(one_rank({copy, kernel})) == doctest::Approx(250));
  CHECK(step_of(one_rank({copy, kernel}), slower) == doctest::Approx(250));
  CHECK(step_of(one_rank({copy, kernel, wait})) == doctest::Approx(250));
  CHECK(step_of(one_rank({copy, kernel, wait}), slower) == doctest::Approx(300));
}

TEST_CASE("kernels: changes of something that the traces do not contain are rejected by name") {
  const RankSet ranks = two_ranks();
  check_refused(ranks, {.faster = {{"attention", 2}}},
                "no activity of these traces has the class \"attention\"");
  check_refused(ranks, {.fused = {"collective"}}, "the class \"collective\"");
  check_refused(ranks, {.groups = {{"tp", 4}}},
                "no collective has a group named \"tp\" (the groups are dp)");
  check_refused(ranks, {.degraded = {slow(5, 0.5)}},
                "rank 5 was not recorded (ranks with a trace: 0, 1)");
  const RankSet unsized =
      one_rank({made::kernel("nvjet", 10, 20, 100, 7, 1),
                made::kernel("ncclKernel_AllReduce_RING_LL_Sum_float()", 12, 120, 50, 20, 2)});
  check_refused(unsized, {.links = 2}, "no collective's size was recorded");
}
