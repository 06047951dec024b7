// Turns: one order for the hosts of all ranks, in which a step ends on the narrowest devices.
#include "shared/step/turns.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/program/queue_order.h"
#include "shared/program/waiting_kernels.h"
#include "shared/scenario/typical_batch.h"
#include "shared/schedule/schedule.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/hand_made.h"
#include "tests/shared/support/one_pipeline.h"

using namespace polyphony;

namespace {

struct MadeTurns : examples::OnePipeline {
  MadeTurns(ScheduleKind kind, int pp, int vpp, int microbatches)
      : OnePipeline(kind, pp, vpp, microbatches) {
    step.turns = make_turns(scenario.model, plan, step, batch);
  }
  Program program() const { return lower(scenario, layout, plan, step, batch); }
};

}  // namespace

TEST_CASE("turns of a pipeline of two stages, counted by hand") {
  // Rank 0: F0 F1 B0 B1. Rank 1: F0 B0 F1 B1.
  const MadeTurns made(ScheduleKind::one_f_one_b, 2, 1, 2);
  const TurnTable turns(made.plan, made.step.works, made.step.turns);
  const auto at = [&](std::size_t stage, std::size_t work, TurnOf what) {
    return turns.at({0, stage, 0}, work, what);
  };
  CHECK(at(0, 0, TurnOf::forward) == 1);
  CHECK(at(0, 1, TurnOf::forward) == 2);
  CHECK(at(1, 0, TurnOf::forward) == 2);
  CHECK(at(1, 0, TurnOf::backward) == 3);
  CHECK(at(1, 1, TurnOf::forward) == 4);   // after B0 of its rank
  CHECK(at(0, 0, TurnOf::backward) == 4);  // after B0 of stage 1
  CHECK(at(1, 1, TurnOf::backward) == 5);
  CHECK(at(0, 1, TurnOf::backward) == 6);
  CHECK(at(0, 0, TurnOf::weight) == 0);
  // Rank 0 sends the rows of F1 at turn 4, when rank 1 reads them, and so before it receives the
  // gradient that B0 reads at its own turn 4.
  const Program program = made.program();
  std::vector<std::string> queued;
  const QueueOrder order(program, Rank(0));
  for (const Launch& launch : order.launches()) {
    if (std::holds_alternative<Compute>(program.ops[launch.op.value].what))
      queued.push_back("compute");
    else if (const auto* what = std::get_if<Exchange>(&program.ops[launch.op.value].what))
      queued.emplace_back(what->sends ? "send" : "receive");
  }
  CHECK(queued == std::vector<std::string>{"compute", "send", "compute", "send", "receive",
                                           "compute", "receive", "compute"});
  CHECK(channels_of(program, Rank(0)) ==
        std::vector<Channel>{{Rank(0), Rank(1)}, {Rank(1), Rank(0)}});
  const WaitingKernels kernels = waiting_kernels(program, Rank(0));
  CHECK(kernels.messages == 2);
  CHECK(kernels.collectives == 1);  // the scalars of the step
}

TEST_CASE(
    "every schedule ends on devices that run one kernel at a time: 2 to 16 stages, 1 to 16 "
    "virtual ones") {
  int layouts = 0;
  for (int k = 0; k <= static_cast<int>(kLastSchedule); ++k)
    for (const int pp : {2, 3, 4, 8, 16})
      for (const int vpp : {1, 2, 3, 4, 8, 12, 16})
        for (const int microbatches : {pp, 2 * pp}) {
          const auto kind = static_cast<ScheduleKind>(k);
          if (pp * vpp > 64) continue;  // as many layers: the rest only takes longer
          if (check_layout(examples::text_only(pp, pp * vpp),
                           examples::one_grid(kind, pp, vpp, 1, microbatches)))
            continue;
          CAPTURE(k);
          CAPTURE(pp);
          CAPTURE(vpp);
          const MadeTurns made(kind, pp, vpp, microbatches);
          CHECK(find_queue_deadlock(made.program()) == "");
          ++layouts;
        }
  MESSAGE(layouts << " layouts");
  CHECK(layouts > 100);
}

// Encoders on every rank of the language module's pipeline, whose parameters or gradients are
// exchanged between actions: their members run other tasks of the language module in between.
TEST_CASE("sharded encoders beside a pipeline are queued in one order") {
  int layouts = 0;
  for (const Shard shard : {Shard::gradients, Shard::full})
    for (const Shard of_language : {Shard::none, Shard::full})
      for (const int pp : {1, 2, 4})
        for (const int lanes : {1, 2})
          for (const int microbatches : {1, 2, 4})
            for (const EncoderOrder order : {EncoderOrder::in_turn, EncoderOrder::phases}) {
              const int ranks = pp * lanes;
              if (ranks == 1) continue;
              Scenario scenario = examples::small_on_cpu(ranks, ranks * microbatches);
              ModuleLayout encoder, language;
              encoder.ranks = language.ranks = ranks;
              encoder.shard = shard;
              language.pp = pp;
              language.shard = of_language;
              Layout layout{.placement = Placement::colocated,
                            .modules = {encoder, encoder, language},
                            .microbatches = microbatches};
              layout.encoder_order = order;
              if (check_layout(scenario, layout)) continue;
              CAPTURE(pp);
              CAPTURE(lanes);
              CAPTURE(microbatches);
              const Plan plan = make_plan(scenario, layout);
              const Batch batch = typical_batch(scenario);
              const StepPlan step = make_queued_step(scenario, layout, plan, batch);
              CHECK(find_queue_deadlock(lower(scenario, layout, plan, step, batch)) == "");
              ++layouts;
            }
  MESSAGE(layouts << " layouts");
  CHECK(layouts > 10);
}

TEST_CASE("a Program without turns is not queued") {
  MadeTurns made(ScheduleKind::one_f_one_b, 2, 1, 2);
  made.step.turns.clear();
  const Program program = made.program();
  CHECK_THROWS_WITH_AS(QueueOrder(program, Rank(0)), doctest::Contains("would be queued before"),
                       InternalError);
}

TEST_CASE("groups that two ranks enter in opposite orders are found") {
  for (const bool crossed : {false, true}) {
    CAPTURE(crossed);
    hand_made::Maker maker(2);
    for (int group = 0; group < 2; ++group)
      maker.program.groups.push_back({GroupKind::data, {Rank(0), Rank(1)}});
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      for (std::uint32_t i = 0; i < 2; ++i) {
        const std::uint32_t group = crossed && rank == 1 ? 1 - i : i;
        maker.add(maker.stream(Rank(rank), StreamKind::collective, "c" + std::to_string(group)),
                  Collective{.group = GroupId(group)});
      }
    const std::string stuck = find_queue_deadlock(maker.finish());
    INFO(stuck);
    CHECK(stuck.empty() == !crossed);
    if (crossed) CHECK(stuck.find("rank 1 in ") != std::string::npos);
  }
}

TEST_CASE("tasks that come after each other are named") {
  MadeTurns made(ScheduleKind::one_f_one_b, 2, 1, 2);
  // Rank 1 first runs the microbatch that rank 0 runs last, which itself waits for rank 1's first
  // gradient.
  made.step.orders[0] = {
      make_action(ActionKind::forward, 0, 0), make_action(ActionKind::backward, 0, 0),
      make_action(ActionKind::forward, 0, 1), make_action(ActionKind::backward, 0, 1)};
  made.step.orders[1] = {
      make_action(ActionKind::forward, 1, 1), make_action(ActionKind::forward, 1, 0),
      make_action(ActionKind::backward, 1, 0), make_action(ActionKind::backward, 1, 1)};
  CHECK_THROWS_WITH_AS(make_turns(made.scenario.model, made.plan, made.step, made.batch),
                       doctest::Contains("tasks come after each other: "), InternalError);
}
