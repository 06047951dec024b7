// What turns recompute: by hand, and beside every choice that there is.
#include "shared/planner/memory_choice.h"

#include <doctest/doctest.h>

#include "shared/planner/timetable.h"
#include "shared/random.h"
#include "shared/schedule/schedule.h"

namespace polyphony::tests {
namespace {

// `stages` on as many ranks: 4 s and `kept` bytes, or with a backward longer by `more` and 1 byte.
std::vector<StepCosts> two_ways(int stages, int microbatches, Bytes kept, Seconds more,
                                Bytes room) {
  std::vector<StepCosts> ways;
  for (const bool lean : {false, true}) {
    StepCosts costs{stages, microbatches, {BranchCosts{"language", {}, {}, {}}}, {}};
    BranchCosts& branch = costs.branches[0];
    for (int k = 0; k < microbatches; ++k) branch.microbatch_of.push_back(k);
    for (int s = 0; s < stages; ++s) branch.rank_of_stage.push_back(s);
    branch.costs.assign(
        static_cast<std::size_t>(stages * microbatches),
        {Seconds(1), Seconds(3) + (lean ? more : Seconds(0)), Seconds(0), lean ? Bytes(1) : kept});
    costs.capacity.assign(static_cast<std::size_t>(stages), room);
    ways.push_back(std::move(costs));
  }
  return ways;
}
std::vector<Turns> one_f_one_b(int stages, int microbatches) {
  std::vector<Turns> orders;
  for (int p = 0; p < stages; ++p)
    orders.push_back(schedule(ScheduleKind::one_f_one_b).order({stages, 1, microbatches}, p));
  return orders;
}

// The least seconds of any choice on one rank; negative: none fits.
double brute_force(const std::vector<StepCosts>& ways, const Turns& order) {
  const BranchCosts& branch = ways.front().branches[0];
  const std::size_t works = branch.costs.size();
  std::size_t all = 1;
  for (std::size_t w = 0; w < works; ++w) all *= ways.size();
  double best = -1;
  for (std::size_t code = 0; code < all; ++code) {
    std::vector<std::size_t> way;
    std::size_t rest = code;
    for (std::size_t w = 0; w < works; ++w, rest /= ways.size()) way.push_back(rest % ways.size());
    double used = 0, seconds = 0;
    bool fits = true;
    for (const Turn& turn : order) {
      const auto at = static_cast<std::size_t>(turn.work);
      const StageCost& cost = ways[way[at]].branches[0].costs[at];
      const auto bytes = static_cast<double>(cost.kept.value);
      used += is_forward(turn) ? bytes : -bytes;
      if (is_forward(turn)) seconds += (cost.forward + cost.input + cost.weight).count();
      fits = fits && used <= static_cast<double>(ways.front().capacity[0].value);
    }
    if (fits && (best < 0 || seconds < best)) best = seconds;
  }
  return best;
}

}  // namespace

TEST_SUITE("memory choice") {
  // 1F1B of two stages: rank 0 has two works in flight, rank 1 one. Room for 6 bytes: on rank 1 all four
  // works keep 5 (4 · 4 s); on rank 0 two neighbours never both do, so every other one: 5 + 1 bytes, two of
  // 4 s and two of 5.
  TEST_CASE("every other work is recomputed where two are in flight and one fits: by hand") {
    const auto ways = two_ways(2, 4, Bytes(5), Seconds(1), Bytes(6));
    const auto choice = choose_memory(ways, one_f_one_b(2, 4));
    REQUIRE(choice);
    CHECK(choice->seconds == Seconds(16 + 2 * 4 + 2 * 5));
    CHECK(choice->gap() < 1e-3);  // shares of works would be no quicker: of neighbours one in all
    const StepCosts costs = chosen(ways, *choice);
    const auto table = timetable(costs, one_f_one_b(2, 4));
    REQUIRE(std::holds_alternative<Timetable>(table));
    CHECK(std::get<Timetable>(table).peak == std::vector<Bytes>{Bytes(6), Bytes(5)});
  }

  TEST_CASE("room for all: nothing is recomputed, and that is proven; for none: no choice") {
    const auto roomy =
        choose_memory(two_ways(2, 4, Bytes(5), Seconds(1), Bytes(10)), one_f_one_b(2, 4));
    REQUIRE(roomy);
    CHECK(roomy->seconds == Seconds(32));
    CHECK(roomy->gap() == 0);
    CHECK(!choose_memory(two_ways(2, 4, Bytes(5), Seconds(1), Bytes(1)), one_f_one_b(2, 4)));
  }

  TEST_CASE("300 random ranks beside all their choices: never below the bound, mostly the best") {
    int best = 0, feasible = 0;
    double worst = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CAPTURE(seed);
      std::uint64_t drawn = 0;
      const auto draw = [&](int below) {
        return static_cast<int>(random_uniform(seed, drawn++) * below);
      };
      const int works = 3 + draw(5);
      std::vector<StepCosts> ways(3, two_ways(1, works, Bytes(1), Seconds(0), Bytes(0)).front());
      for (int w = 0; w < works; ++w) {
        double seconds = 2 + draw(20);
        int bytes = 20 + draw(60);
        for (StepCosts& way : ways) {
          StageCost& cost = way.branches[0].costs[static_cast<std::size_t>(w)];
          cost = {Seconds(1), Seconds(seconds), Seconds(0), Bytes(bytes)};
          seconds += 1 + draw(6);
          bytes -= bytes * (1 + draw(6)) / 10;
        }
      }
      for (StepCosts& way : ways) way.capacity = {Bytes(30 + draw(150))};
      for (StepCosts& way : ways) way.capacity = ways.front().capacity;
      // Forwards up to four ahead, backwards in the same order.
      Turns order;
      int ahead = 0, next = 0, back = 0;
      while (back < works) {
        const bool forward = next < works && (ahead == 0 || (ahead < 4 && draw(2) == 0));
        order.push_back(make_turn(forward ? TurnKind::forward : TurnKind::backward, 0,
                                  forward ? next++ : back++));
        ahead += forward ? 1 : -1;
      }
      const double least = brute_force(ways, order);
      const auto choice = choose_memory(ways, {order});
      REQUIRE(choice.has_value() == (least >= 0));
      if (!choice) continue;
      ++feasible;
      CHECK(choice->bound.count() <= least * (1 + 1e-9));
      CHECK(choice->seconds.count() >= least * (1 - 1e-9));
      best += choice->seconds.count() <= least * (1 + 1e-9) ? 1 : 0;
      worst = std::max(worst, choice->seconds.count() / least - 1);
    }
    MESSAGE(best << " of " << feasible << " the best, worst " << worst);
    CHECK(feasible > 150);
    CHECK(best > feasible * 9 / 10);
    CHECK(worst < 0.05);
  }
}

}  // namespace polyphony::tests
