// The named schedules compared with closed forms: every action once, no deadlock, and the bubble
// and number of microbatches in flight that their papers state.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "shared/planner/equal_costs.h"
#include "shared/planner/timetable.h"
#include "shared/schedule/orders.h"

using namespace polyphony;

namespace {

std::vector<Actions> orders_of(const Schedule& row, const Pipeline& pipeline) {
  std::vector<Actions> orders;
  for (int rank = 0; rank < pipeline.ranks; ++rank) orders.push_back(row.order(pipeline, rank));
  return orders;
}

template <class Visit>
void each_legal(Visit visit) {
  for (const Schedule& row : kSchedules)
    for (const int ranks : {1, 2, 3, 4, 8})
      for (const int virtual_stages : {1, 2, 3})
        for (const int microbatches : {1, 2, 3, 4, 6, 8, 16, 24})
          for (const int after : {0, 1, 2, 3, 5}) {
            const Pipeline pipeline{ranks, virtual_stages, microbatches, after};
            if (!row.refusal(pipeline).empty()) continue;
            CAPTURE(row.name);
            CAPTURE(ranks);
            CAPTURE(virtual_stages);
            CAPTURE(microbatches);
            CAPTURE(after);
            visit(row, pipeline);
          }
}

Timetable played(const std::vector<Actions>& orders, const ActionLengths& lengths = {}) {
  auto outcome = timetable(equal_costs(orders, lengths), orders);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) FAIL(no->reason);
  return std::get<Timetable>(outcome);
}
double bubble(ScheduleKind kind, const Pipeline& pipeline, const ActionLengths& lengths = {}) {
  return longest_rest(played(orders_of(schedule(kind), pipeline), lengths)).count();
}
int most_tapes(ScheduleKind kind, const Pipeline& pipeline, int rank) {
  return tapes_in_flight(schedule(kind).order(pipeline, rank));
}
bool contains(const Actions& order, ActionKind kind) {
  return std::any_of(order.begin(), order.end(),
                     [&](const Action& action) { return action.kind == kind; });
}
// Returns a pipeline that the columns allow, with the fewest virtual stages and at least
// `microbatches` microbatches per rank.
Pipeline smallest(const Schedule& row, int ranks, int microbatches) {
  return {ranks, row.min_virtual_stages,
          ranks * std::max(microbatches, row.min_microbatches_per_rank)};
}

// The columns of a row, stated by hand.
struct Columns {
  ScheduleKind kind;
  int min_virtual_stages, max_virtual_stages, min_microbatches_per_rank;
  bool groups_of_ranks, splits_backward, keeps_all_activations, interleaves_encoders;
};
constexpr Columns kColumns[] = {
    // Runs every virtual stage of a rank to its end before the next one; keeps every forward's
    // activations until the last forward has run.
    {ScheduleKind::gpipe, 1, kAnyVirtualStages, 0, false, false, true, false},
    // The alternation has one forward and one backward, of one stage. Stages of encoders that join
    // make it interleaved.
    {ScheduleKind::one_f_one_b, 1, 1, 0, false, false, false, true},
    // With one virtual stage it would be 1f1b; a chunk runs pp microbatches before the next chunk.
    {ScheduleKind::interleaved, 2, kAnyVirtualStages, 0, true, false, false, true},
    // 1f1b's order with I in place of B; W later.
    {ScheduleKind::zero_bubble, 1, 1, 0, false, true, false, false},
    {ScheduleKind::zero_bubble_h2, 1, 1, 0, false, true, false, false},
    // A V has two arms, so each rank holds exactly two stages. Its order is made for 2·pp − 1
    // microbatches or more, and the actions of those that do not exist are dropped.
    {ScheduleKind::zero_bubble_v, 2, 2, 0, false, true, false, false},
    // As zb-v, but rank 0 runs 2·pp − 1 forwards down before its first pair, so the step needs 2·pp
    // microbatches. Some backwards are whole.
    {ScheduleKind::dualpipe_v, 2, 2, 2, false, true, false, false},
    // 1f1b with more forwards in the warm-up. The order with encoders has no such warm-up.
    {ScheduleKind::eager_one_f_one_b, 1, 1, 0, false, false, false, false},
    // A V has two arms.
    {ScheduleKind::v_half, 2, 2, 0, false, true, false, false},
    {ScheduleKind::v_min, 2, 2, 0, false, true, false, false},
    // interleaved's groups; all backwards are split.
    {ScheduleKind::interleaved_zero_bubble, 2, kAnyVirtualStages, 0, true, true, false, false},
};

}  // namespace

TEST_CASE("every schedule: each stage and microbatch has its actions once, on its rank") {
  each_legal([](const Schedule& row, const Pipeline& pipeline) {
    std::set<Action> seen;
    std::size_t forwards = 0, backwards = 0, inputs = 0, weights = 0;
    for (int rank = 0; rank < pipeline.ranks; ++rank)
      for (const Action& action : row.order(pipeline, rank)) {
        REQUIRE(row.place(pipeline, action.stage) == rank);
        REQUIRE(action.work < pipeline.microbatches);
        Action once = action;
        once.overlapped = false;
        REQUIRE(seen.insert(once).second);
        forwards += action.kind == ActionKind::forward ? 1 : 0;
        backwards += action.kind == ActionKind::backward ? 1 : 0;
        inputs += action.kind == ActionKind::backward_input ? 1 : 0;
        weights += action.kind == ActionKind::backward_weight ? 1 : 0;
      }
    const auto all = static_cast<std::size_t>(pipeline.stages() * pipeline.microbatches);
    REQUIRE(forwards == all);
    REQUIRE(backwards + inputs == all);
    REQUIRE(weights == inputs);
  });
}

TEST_CASE("every schedule: no deadlock, also if the pipeline feeds another branch") {
  each_legal([](const Schedule& row, const Pipeline& pipeline) {
    std::vector<Actions> orders = orders_of(row, pipeline);
    const int after = pipeline.after;
    for (int rank = 0; rank < after; ++rank) {
      orders.push_back(schedule(row.following).order({after, 1, pipeline.microbatches}, rank));
      for (Action& action : orders.back())
        action.stage = static_cast<std::uint16_t>(action.stage + pipeline.stages());
    }
    REQUIRE(played(orders).makespan > Seconds(0));
  });
}

// F = I = W = 1, so that a whole backward takes 2. Bubbles: gpipe, 1f1b and interleaved (pp − 1)(F
// + B) of a chunk; ZB-H1 (pp − 1)(F + I − W); ZB-H2 and ZB-V have none (Qi et al., table 1).
TEST_CASE("bubbles") {
  for (const int pp : {2, 3, 4, 8}) {
    CAPTURE(pp);
    const Pipeline one{pp, 1, 6 * pp}, two{pp, 2, 6 * pp};
    CHECK(bubble(ScheduleKind::gpipe, one) == 3 * (pp - 1));
    CHECK(bubble(ScheduleKind::one_f_one_b, one) == 3 * (pp - 1));
    CHECK(bubble(ScheduleKind::eager_one_f_one_b, one) == 3 * (pp - 1));
    CHECK(bubble(ScheduleKind::interleaved, two) == 3 * (pp - 1));
    CHECK(bubble(ScheduleKind::zero_bubble, one) == pp - 1);
    CHECK(bubble(ScheduleKind::zero_bubble_h2, one) == 0);
    CHECK(bubble(ScheduleKind::zero_bubble_v, two) == 0);
    CHECK(bubble(ScheduleKind::dualpipe_v, two) == pp - 1);
    CHECK(bubble(ScheduleKind::interleaved_zero_bubble, two) == pp - 1);
    CHECK(bubble(ScheduleKind::interleaved_zero_bubble, {pp, 3, 6 * pp}) == pp - 1);
    const ActionLengths uneven{Seconds(2), Seconds(3), Seconds(1), Seconds(4)};
    CHECK(bubble(ScheduleKind::one_f_one_b, one, uneven) == 6 * (pp - 1));
    CHECK(bubble(ScheduleKind::zero_bubble, one, uneven) == (2 + 3 - 1) * (pp - 1));
  }
}

// Stages are half as large as those of 1f1b, whose bubble is 6·(pp − 1) of their F. The published
// bubbles are 1/2 and 2/3 of it, the published memory is in whole microbatches, two halves each
// (Qi et al., arXiv 2405.15362; huggingface.co/spaces/sail/pipeline-parallelism-with-controllable-memory).
TEST_CASE("v-half and v-min: published bubbles and activations") {
  for (const int pp : {2, 3, 4, 5, 6, 8, 12, 16, 32}) {
    CAPTURE(pp);
    const Pipeline two{pp, 2, 6 * pp};
    CHECK(bubble(ScheduleKind::v_half, two) <= 16 * pp / 5 + 1);  // 3·pp grows with the ranks
    CHECK(bubble(ScheduleKind::v_min, two) <= 4 * pp);
    for (int rank = 0; rank < pp; ++rank) {
      CAPTURE(rank);
      CHECK(most_tapes(ScheduleKind::v_half, two, rank) <= 2 * ((pp + 2) / 2));
      CHECK(most_tapes(ScheduleKind::v_min, two, rank) <= 2 * ((pp + 4) / 3));
    }
  }
}

TEST_CASE("microbatches in flight by rank") {
  for (const int pp : {2, 3, 4, 8})
    for (int rank = 0; rank < pp; ++rank) {
      CAPTURE(pp);
      CAPTURE(rank);
      const Pipeline one{pp, 1, 6 * pp}, two{pp, 2, 6 * pp};
      const int behind = pp - rank - 1;
      CHECK(most_tapes(ScheduleKind::gpipe, one, rank) == 6 * pp);
      CHECK(most_tapes(ScheduleKind::one_f_one_b, one, rank) == behind + 1);
      CHECK(most_tapes(ScheduleKind::eager_one_f_one_b, one, rank) == 2 * behind + 1);
      CHECK(most_tapes(ScheduleKind::zero_bubble, one, rank) == behind + 1);
      CHECK(most_tapes(ScheduleKind::zero_bubble_h2, one, rank) == 2 * behind + 1);
      CHECK(most_tapes(ScheduleKind::interleaved, two, rank) == 2 * behind + pp + 1);
      CHECK(most_tapes(ScheduleKind::interleaved_zero_bubble, two, rank) == behind + pp + 1);
      // Half as large and twice as many: every rank has the bytes of 1f1b's first rank.
      CHECK(most_tapes(ScheduleKind::zero_bubble_v, two, rank) ==
            2 * most_tapes(ScheduleKind::one_f_one_b, one, 0));
      CHECK(most_tapes(ScheduleKind::dualpipe_v, two, rank) == 2 * pp + 1);
    }
}

TEST_CASE("microbatches in flight by stage: only moments that no other moment covers") {
  using Moments = std::vector<std::vector<InFlight>>;
  const StagesInFlight whole = in_flight(schedules::one_f_one_b({4, 1, 8}, 1));
  CHECK(whole.stages == std::vector<std::uint16_t>{1});
  CHECK(whole.moments == Moments{{{3}}});
  // Rank 1 of 2: F I F I W F I W … W W. While an I runs, its activations and two weight parts are
  // held.
  const StagesInFlight split = in_flight(schedules::zero_bubble({2, 1, 4}, 1));
  CHECK(split.moments == Moments{{{1, 1}}, {{1, 2, 1}}});
  const StagesInFlight v = in_flight(schedules::zero_bubble_v({2, 2, 6}, 0));
  CHECK(v.stages == std::vector<std::uint16_t>{0, 3});
  for (const auto& moment : v.moments) CHECK(moment[0].tapes + moment[1].tapes <= 4);
}

TEST_CASE("columns of the table") {
  REQUIRE(std::size(kColumns) == std::size(kSchedules));
  for (const Columns& stated : kColumns) {
    const Schedule& row = schedule(stated.kind);
    CAPTURE(row.name);
    CHECK(row.kind == stated.kind);
    CHECK(row.min_virtual_stages == stated.min_virtual_stages);
    CHECK(row.max_virtual_stages == stated.max_virtual_stages);
    CHECK(row.min_microbatches_per_rank == stated.min_microbatches_per_rank);
    CHECK(row.groups_of_ranks == stated.groups_of_ranks);
    CHECK(row.splits_backward == stated.splits_backward);
    CHECK(row.keeps_all_activations == stated.keeps_all_activations);
    CHECK(row.interleaves_encoders == stated.interleaves_encoders);
  }
}

TEST_CASE("every schedule: it accepts a pipeline if and only if the columns allow it") {
  for (const Schedule& row : kSchedules)
    for (const int ranks : {1, 2, 3, 4, 8})
      for (const int virtual_stages : {1, 2, 3, 4})
        for (int microbatches = 1; microbatches <= 4 * ranks; ++microbatches) {
          CAPTURE(row.name);
          CAPTURE(ranks);
          CAPTURE(virtual_stages);
          CAPTURE(microbatches);
          const bool allowed = virtual_stages >= row.min_virtual_stages &&
                               virtual_stages <= row.max_virtual_stages &&
                               (row.min_virtual_stages == 1 || ranks > 1) &&
                               microbatches >= row.min_microbatches_per_rank * ranks &&
                               (!row.groups_of_ranks || microbatches % ranks == 0);
          REQUIRE(row.refusal({ranks, virtual_stages, microbatches}).empty() == allowed);
        }
}

// Also with the fewest virtual stages and microbatches, and on every rank.
TEST_CASE("every schedule: I and W actions if and only if it splits backwards") {
  each_legal([](const Schedule& row, const Pipeline& pipeline) {
    for (int rank = 0; rank < pipeline.ranks; ++rank) {
      const Actions order = row.order(pipeline, rank);
      REQUIRE(contains(order, ActionKind::backward_input) == row.splits_backward);
      REQUIRE(contains(order, ActionKind::backward_weight) == row.splits_backward);
    }
  });
}

TEST_CASE("every schedule: more microbatches need more memory if and only if it keeps all") {
  for (const Schedule& row : kSchedules)
    for (const int ranks : {2, 3, 4, 8})
      for (int rank = 0; rank < ranks; ++rank) {
        CAPTURE(row.name);
        CAPTURE(ranks);
        CAPTURE(rank);
        const Pipeline few = smallest(row, ranks, 6), many = smallest(row, ranks, 12);
        const int tapes = most_tapes(row.kind, few, rank);
        const int all = few.virtual_stages * few.microbatches;
        REQUIRE((tapes == all) == row.keeps_all_activations);
        REQUIRE((most_tapes(row.kind, many, rank) > tapes) == row.keeps_all_activations);
      }
}

TEST_CASE("one stage: forwards and backwards alternate unless the schedule keeps all activations") {
  for (const Schedule& row : kSchedules) {
    if (row.min_virtual_stages > 1) continue;
    CAPTURE(row.name);
    CHECK(most_tapes(row.kind, {1, 1, 8}, 0) == (row.keeps_all_activations ? 8 : 1));
  }
}

// Schedule interleaved then runs all stages of a rank: rank r must hold the stages r, pp + r, …,
// and no backward is split.
TEST_CASE("schedules that interleave encoders place stages as interleaved does") {
  for (const Schedule& row : kSchedules) {
    if (!row.interleaves_encoders) continue;
    CAPTURE(row.name);
    CHECK((row.place == schedule(ScheduleKind::interleaved).place));
    CHECK(!row.splits_backward);
    CHECK(!row.keeps_all_activations);
  }
}

TEST_CASE("the default schedule accepts its number of virtual stages") {
  CHECK(default_schedule(1) == ScheduleKind::one_f_one_b);
  for (const int virtual_stages : {2, 3, 8})
    CHECK(default_schedule(virtual_stages) == ScheduleKind::interleaved);
  for (const int virtual_stages : {1, 2, 3, 8}) {
    const Schedule& row = schedule(default_schedule(virtual_stages));
    CHECK(row.refusal({4, virtual_stages, 8}).empty());
    CHECK(row.interleaves_encoders);
  }
}
