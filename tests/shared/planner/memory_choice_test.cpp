// What actions recompute: compared with hand calculations and with exhaustive search.
#include "shared/planner/memory_choice.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/planner/host_copies.h"
#include "shared/planner/timetable.h"
#include "shared/random.h"
#include "shared/schedule/schedule.h"

namespace polyphony::tests {
namespace {

// `stages` stages on as many ranks. Option 0: 4 s and `kept` bytes; option 1: backward longer by
// `more`, 1 byte.
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
std::vector<Actions> one_f_one_b(int stages, int microbatches) {
  std::vector<Actions> orders;
  for (int p = 0; p < stages; ++p)
    orders.push_back(schedule(ScheduleKind::one_f_one_b).order({stages, 1, microbatches}, p));
  return orders;
}

// Returns the least seconds of any choice on one rank; negative if none fits.
double brute_force(const std::vector<StepCosts>& ways, const Actions& order) {
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
    for (const Action& action : order) {
      const auto at = static_cast<std::size_t>(action.work);
      const StageCost& cost = ways[way[at]].branches[0].costs[at];
      const auto bytes = static_cast<double>(cost.kept.value);
      used += is_forward(action) ? bytes : -bytes;
      if (is_forward(action)) seconds += (cost.forward + cost.input + cost.weight).count();
      fits = fits && used <= static_cast<double>(ways.front().capacity[0].value);
    }
    if (fits && (best < 0 || seconds < best)) best = seconds;
  }
  return best;
}

// The same if option 2 offloads its bytes, moment by moment: they are resident during the forward
// and the action after it, and during the backward and the action before it. Each copy is free up
// to the shortest duration of the action that it overlaps with.
double brute_force_moving(const std::vector<StepCosts>& ways, const Actions& order) {
  const std::size_t works = ways.front().branches[0].costs.size();
  const int actions = static_cast<int>(order.size());
  const auto cost = [&](std::size_t way, int work) -> const StageCost& {
    return ways[way].branches[0].costs[static_cast<std::size_t>(work)];
  };
  const auto length = [&](int p) {
    const Action& action = order[static_cast<std::size_t>(p)];
    return (is_forward(action) ? cost(0, action.work).forward : cost(0, action.work).input).count();
  };
  std::vector<int> forward(works), backward(works);
  for (int p = 0; p < actions; ++p) {
    const Action& action = order[static_cast<std::size_t>(p)];
    (is_forward(action) ? forward : backward)[static_cast<std::size_t>(action.work)] = p;
  }
  std::size_t all = 1;
  for (std::size_t w = 0; w < works; ++w) all *= ways.size();
  double best = -1;
  for (std::size_t code = 0; code < all; ++code) {
    double seconds = 0;
    std::vector<double> used(static_cast<std::size_t>(actions), 0.0);
    std::size_t rest = code;
    for (std::size_t w = 0; w < works; ++w, rest /= ways.size()) {
      const StageCost& one = cost(rest % ways.size(), static_cast<int>(w));
      const int f = forward[w], b = backward[w];
      const bool goes = one.moved > Bytes(0) && b - f >= 3;
      seconds += (one.forward + one.input).count();
      for (int p = f; p <= b; ++p) {
        const bool here = !goes || p <= f + 1 || p >= b - 1;
        used[static_cast<std::size_t>(p)] +=
            static_cast<double>(one.kept.value + (here ? one.moved.value : 0));
      }
      if (!goes) continue;
      seconds += std::max(0.0, one.copy.count() - length(f + 1));
      seconds += std::max(0.0, one.copy.count() - length(b - 1));
    }
    const bool fits = std::all_of(used.begin(), used.end(), [&](double bytes) {
      return bytes <= static_cast<double>(ways.front().capacity[0].value);
    });
    if (fits && (best < 0 || seconds < best)) best = seconds;
  }
  return best;
}

}  // namespace

TEST_SUITE("memory choice") {
  // 1F1B of two stages: rank 0 has two microbatches in flight, rank 1 one. Room for 6 bytes: on
  // rank 1 all four save 5 bytes (4 · 4 s). On rank 0 no two neighbors fit, so every other one
  // saves: 5 + 1 bytes, two of 4 s and two of 5 s.
  TEST_CASE("every other microbatch is recomputed if two are in flight and one fits: by hand") {
    const auto ways = two_ways(2, 4, Bytes(5), Seconds(1), Bytes(6));
    const auto choice = choose_memory(ways, one_f_one_b(2, 4));
    REQUIRE(choice);
    CHECK(choice->seconds == Seconds(16 + 2 * 4 + 2 * 5));
    CHECK(choice->gap() <
          1e-3);  // fractions of microbatches would be no faster: at most one of two neighbors
    const StepCosts costs = chosen(ways, *choice, one_f_one_b(2, 4));
    const auto table = timetable(costs, one_f_one_b(2, 4));
    REQUIRE(std::holds_alternative<Timetable>(table));
    CHECK(std::get<Timetable>(table).peak == std::vector<Bytes>{Bytes(6), Bytes(5)});
  }

  TEST_CASE(
      "with room for all nothing is recomputed, which is proven optimal; with room for none no "
      "choice") {
    const auto roomy =
        choose_memory(two_ways(2, 4, Bytes(5), Seconds(1), Bytes(10)), one_f_one_b(2, 4));
    REQUIRE(roomy);
    CHECK(roomy->seconds == Seconds(32));
    CHECK(roomy->gap() == 0);
    CHECK(!choose_memory(two_ways(2, 4, Bytes(5), Seconds(1), Bytes(1)), one_f_one_b(2, 4)));
  }

  TEST_CASE("300 random ranks against exhaustive search: never below the bound, mostly optimal") {
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
      Actions order;
      int ahead = 0, next = 0, back = 0;
      while (back < works) {
        const bool forward = next < works && (ahead == 0 || (ahead < 4 && draw(2) == 0));
        order.push_back(make_action(forward ? ActionKind::forward : ActionKind::backward, 0,
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

  // GPipe of four microbatches on one rank, forwards of 2 s, backwards of 4 s: F0 F1 F2 F3 B0 B1 B2
  // B3, all offloaded. A copy to the host overlaps with the next action, 2 s, or B0, 4 s, for F3; a
  // copy back overlaps with the action before, which is F3, 2 s, for B0, and takes 4 s for the
  // others. With copies of 3 s the first three pay 1 s on the way out, and F0 pays 1 s on the way
  // back.
  TEST_CASE("copies are free as far as they overlap, and the remainder is paid: by hand") {
    StepCosts costs{1, 4, {BranchCosts{"language", {0}, {0, 1, 2, 3}, {}}}, {}};
    costs.branches[0].costs.assign(
        4, {Seconds(2), Seconds(4), {}, Bytes(1), {}, Bytes(9), Seconds(3)});
    const std::vector<Actions> orders{schedule(ScheduleKind::gpipe).order({1, 1, 4}, 0)};
    const std::vector<Trip> trips = find_trips(costs, orders[0]);
    REQUIRE(trips.size() == 4);
    const double out[] = {2, 2, 2, 4}, back[] = {2, 4, 4, 4};
    for (std::size_t t = 0; t < 4; ++t) {
      CAPTURE(t);
      CHECK(trips[t].goes());
      CHECK(trips[t].out.count() == out[t]);
      CHECK(trips[t].back.count() == back[t]);
    }
    pay_for_copies(orders, costs);
    const auto& paid = costs.branches[0].costs;
    CHECK(paid[0].forward == Seconds(3));
    CHECK(paid[0].input == Seconds(5));
    CHECK(paid[1].forward == Seconds(3));
    CHECK(paid[1].input == Seconds(4));
    CHECK(paid[3].forward == Seconds(2));
  }

  // Three options: saved, recomputed, offloaded. Room for 35 bytes: the 9 bytes of three
  // microbatches, and the 1 byte of each offloaded one that stays. Copies of 1 s are free, so all
  // are offloaded (three are resident when F7 meets B0: its own, one on its way out, one on its way
  // back). Recomputing a microbatch costs 1 s. Slow copies are not worth it.
  TEST_CASE("activations whose offload is free are not recomputed") {
    for (const bool quick : {true, false}) {
      std::vector<StepCosts> ways = two_ways(1, 8, Bytes(10), Seconds(1), Bytes(38));
      ways.push_back(ways.front());
      for (StageCost& cost : ways.back().branches[0].costs) {
        cost.kept = Bytes(1);
        cost.moved = Bytes(9);
        cost.copy = quick ? Seconds(1) : Seconds(100);
      }
      const auto choice = choose_memory(ways, {schedule(ScheduleKind::gpipe).order({1, 1, 8}, 0)});
      REQUIRE(choice);
      CAPTURE(quick);
      const auto count = [&](int way) {
        return std::count(choice->way[0].begin(), choice->way[0].end(), way);
      };
      if (quick) {
        CHECK(count(1) == 0);
        CHECK(count(2) == 8);
        CHECK(choice->seconds == Seconds(32));
        CHECK(choice->gap() == 0);
      } else {
        CHECK(count(2) == 0);
        CHECK(choice->seconds == Seconds(32 + 5));  // three saved and five single bytes: 35 of 38
      }
    }
  }

  TEST_CASE("300 random ranks with copies against exhaustive search: never below the bound") {
    int best = 0, feasible = 0, missed = 0, moving = 0;
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
        const auto at = static_cast<std::size_t>(w);
        const StageCost kept{Seconds(1 + draw(4)), Seconds(2 + draw(8)), Seconds(0),
                             Bytes(20 + draw(60))};
        StageCost again = kept, away = kept;
        again.input += kept.forward;
        again.kept = Bytes(kept.kept.value / (2 + draw(5)));
        away.kept = Bytes(draw(8));
        away.moved = kept.kept - away.kept;
        away.copy = Seconds(1 + draw(8));
        const StageCost* const each[] = {&kept, &again, &away};
        for (std::size_t way = 0; way < 3; ++way) ways[way].branches[0].costs[at] = *each[way];
      }
      const Bytes room(60 + draw(150));
      for (StepCosts& way : ways) way.capacity = {room};
      Actions order;
      int ahead = 0, next = 0, back = 0;
      while (back < works) {
        const bool forward = next < works && (ahead == 0 || (ahead < 5 && draw(3) > 0));
        order.push_back(make_action(forward ? ActionKind::forward : ActionKind::backward, 0,
                                    forward ? next++ : back++));
        ahead += forward ? 1 : -1;
      }
      const double least = brute_force_moving(ways, order);
      const auto choice = choose_memory(ways, {order});
      if (least < 0) CHECK_FALSE(choice.has_value());
      if (least < 0) continue;
      ++feasible;
      missed += choice ? 0 : 1;
      if (!choice) continue;
      CHECK(choice->bound.count() <= least * (1 + 1e-9));
      CHECK(choice->seconds.count() >= least * (1 - 1e-9));
      best += choice->seconds.count() <= least * (1 + 1e-9) ? 1 : 0;
      worst = std::max(worst, choice->seconds.count() / least - 1);
      moving += std::count(choice->way[0].begin(), choice->way[0].end(), 2) > 0 ? 1 : 0;
    }
    MESSAGE(best << " of " << feasible << " the best, worst " << worst << ", " << missed
                 << " not found, tapes moved in " << moving);
    CHECK(feasible > 150);
    CHECK(moving > 50);
    CHECK(best > feasible * 8 / 10);
    CHECK(missed < feasible / 20);
    CHECK(worst < 0.1);
  }
}

}  // namespace polyphony::tests
