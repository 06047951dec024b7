// Not a test: measures the CPU time that planners take for one step, on one core. Run by
// scripts/bench_planners: one row per function of kRows; the last line names the slowest compared
// with its limit.
#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <vector>

#include "shared/planner/entrain.h"
#include "shared/random.h"
#include "tests/shared/planner/order_search_bench.h"

namespace polyphony {
namespace {

double cpu_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Row {
  const char* name;
  double seconds, bar;
};

// 512 samples over 4 replicas of 32 microbatches, median of 101 batches: encoder work log-normal,
// language work from image and text tokens.
Row entrain_step() {
  std::vector<double> times;
  for (std::uint64_t batch = 0; batch < 101; ++batch) {
    std::vector<entrain::SampleWork> samples;
    for (std::uint64_t s = 0; s < 512; ++s) {
      const double encoder = std::exp(random_normal(batch, 2 * s));
      samples.push_back({encoder, 0.5 * encoder + std::exp(random_normal(batch, 2 * s + 1))});
    }
    const double begin = cpu_now();
    for (const entrain::Positions& mine : entrain::deal_replicas(samples, 4)) {
      std::vector<entrain::SampleWork> own;
      for (const int s : mine) own.push_back(samples[static_cast<std::size_t>(s)]);
      if (entrain::plan_replica(own, 32).size() != 32) return {"entrain", 1e9, 0};
    }
    times.push_back(cpu_now() - begin);
  }
  std::nth_element(times.begin(), times.begin() + 50, times.end());
  return {"entrain, 512 samples, 4 replicas of 32 microbatches", times[50], 5e-3};
}

Row placements() {
  return {"dip, a thousand stage placements of the list scheduler", thousand_placements(), 5e-3};
}

constexpr Row (*kRows[])() = {entrain_step, placements};

}  // namespace
}  // namespace polyphony

// Time limit in seconds of the search with whole backwards; default 60.
int main(int argc, char** argv) {
  using namespace polyphony;
  const double longest = argc > 1 ? std::atof(argv[1]) : 60;
  Row worst{"", 0, 1};
  for (const auto& measure : kRows) {
    const Row row = measure();
    std::cout << row.name << ": " << std::setprecision(3) << 1e3 * row.seconds << " ms (bar "
              << 1e3 * row.bar << " ms)\n";
    if (row.seconds / row.bar >= worst.seconds / worst.bar) worst = row;
  }
  const std::string optimal = optimal_small_steps();
  std::cout << "dip, order search, small steps, optimal compared with an exact solver: " << optimal
            << "\n";
  std::cout << "dip, order search with split backwards, above the bound: "
            << search_gaps(true, std::min(longest, 10.0)) << "\n";
  const std::string gaps = search_gaps(false, longest);
  std::cout << "dip, order search, above the bound: " << gaps << "\n";
  std::cout << (worst.seconds <= worst.bar ? "all within their bars" : "too slow") << ": "
            << worst.name << " takes " << 100 * worst.seconds / worst.bar
            << " % of its bar; optimal: " << optimal << "; above the bound: " << gaps << "\n";
  return worst.seconds <= worst.bar ? 0 : 1;
}
