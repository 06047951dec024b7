// Not a test: how many layouts a second the closed-form screen answers for, footprint and bound, by
// processor time of one core. scripts/bench_screen runs it.
//   product   every legal combination of tp, cp, pp, vpp, sp, shard, recompute, schedule and
//             microbatch, homogeneous, on an encoder's ranks and on others: what a search lists
//   climbs    random layouts and all their neighbors: little in common
#include <ctime>

#include <cstdlib>
#include <iomanip>
#include <iostream>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/search/neighbours.h"
#include "shared/search/random_layout.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

Seconds cpu_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

class Product {
 public:
  Product(const Scenario& scenario, std::size_t most) : scenario_(scenario), most_(most) {}

  std::vector<Layout> run() {
    const int ranks = scenario_.cluster.ranks();
    grids(Placement::homogeneous, 0, nullptr);
    for (const int owned : {ranks, ranks / 8, ranks / 4})
      for (const int tp : {1, 2, 4, 8})
        for (const Shard shard : {Shard::optimizer, Shard::full}) {
          ModuleLayout encoder;
          encoder.tp = tp;
          encoder.ranks = owned;
          encoder.shard = shard;
          const bool shares = owned == ranks;
          grids(shares ? Placement::colocated : Placement::non_colocated, shares ? 0 : owned,
                &encoder);
        }
    return std::move(found_);
  }

 private:
  void grids(Placement placement, int first, const ModuleLayout* encoder) {
    Layout layout;
    layout.placement = placement;
    ModuleLayout grid;
    grid.first_rank = first;
    grid.ranks = scenario_.cluster.ranks() - first;
    for (const int tp : {1, 2, 4, 8})
      for (const int cp : {1, 2, 4})
        for (const int pp : {1, 2, 4, 7, 8, 16, 32})
          for (const bool sp : {false, true}) {
            if (grid.ranks % (tp * cp * pp) != 0) continue;
            grid.tp = tp, grid.cp = cp, grid.pp = pp, grid.sp = sp && tp > 1;
            if (cp > 1) grid.tokens = TokenAssignment::zigzag;
            layout.modules.assign(scenario_.model.modules.size(), encoder ? *encoder : grid);
            layout.modules.back() = grid;
            works(layout);
          }
  }

  void works(Layout layout) {
    for (const Schedule& row : kSchedules)
      for (const int vpp : {1, 2, 4})
        for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::full})
          for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
            for (const int microbatch : {1, 2, 4}) {
              layout.schedule = row.kind;
              for (ModuleLayout& grid : layout.modules) {
                if (layout.placement == Placement::homogeneous || &grid == &layout.modules.back())
                  grid.vpp = vpp, grid.shard = shard;
                grid.recompute = recompute;
              }
              layout.microbatches =
                  scenario_.data.global_batch / layout.modules.back().dp() / microbatch;
              if (found_.size() < most_ && !check_layout(scenario_, layout))
                found_.push_back(layout);
            }
  }

  const Scenario& scenario_;
  const std::size_t most_;
  std::vector<Layout> found_;
};

std::vector<Layout> climbs(const Scenario& scenario, std::size_t most) {
  std::vector<Layout> found;
  for (std::uint64_t seed = 0; found.size() < most; ++seed) {
    const auto layout = random_layout(scenario, seed);
    if (!layout) continue;
    found.push_back(*layout);
    for (Layout& next : neighbours(scenario, *layout)) found.push_back(std::move(next));
  }
  return found;
}

void measure(const char* name, const Scenario& scenario, const std::vector<Layout>& layouts) {
  Screen screen(scenario, *shipped_profile(scenario.cluster), typical_batch(scenario));
  const Bytes capacity = scenario.cluster.device.memory;
  std::size_t fit = 0;
  Seconds best(1e300);
  const Seconds before = cpu_now();
  for (const Layout& layout : layouts) {
    const bool fits = screen.footprint(layout).memory <= capacity;
    const Seconds step = screen.bound(layout).step;
    fit += fits;
    if (fits) best = std::min(best, step);
  }
  const double count = static_cast<double>(layouts.size());
  std::cout << std::setprecision(4) << name << ": " << layouts.size() << " layouts, "
            << count / (cpu_now() - before).count() << " a second; " << fit
            << " fit, none in less than " << best.count() << " s\n";
}

}  // namespace
}  // namespace polyphony

int main(int argc, char** argv) {
  using namespace polyphony;
  const Scenario scenario =
      test::scenario_at(argc > 1 ? argv[1] : "scenarios/vlm_12b_70b_h100.json");
  const std::size_t most = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200'000;
  measure("product", scenario, Product(scenario, most).run());
  measure("climbs", scenario, climbs(scenario, most / 4));
}
