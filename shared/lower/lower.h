// Lowering: makes the Program (every op of every rank) from a Plan, a StepPlan and one global
// batch. It is deterministic: the same StepPlan gives the same Program (equal hash).
//
//   The StepPlan decides what each work holds and in which order a rank runs its actions;
//   lowering adds what follows from that. Receives are posted at most StepPlan::receive_slots
//   actions of their chunk ahead of the compute op that reads them. Fully sharded parameters are
//   gathered one chunk ahead of their use. Sharded gradients are reduced after every backward.
//
//   The tail of the step on a rank: the remaining gradient reductions, chunk by chunk; an
//   all-reduce of the step's scalars over the world; one optimizer update; gathers of the updated
//   parameters.
//
//   Offloaded activations (ModuleLayout::offload_activations, Recipe::offload) are those of
//   forwards whose backward is at least three actions later, so that an action runs in parallel
//   with either copy. The copy to the host starts right after the forward, on a stream of its own.
//   An action begins only when the activations of all actions but the one before it have left, so
//   that a slow link makes a step longer, but does not raise its memory. The copy back runs on
//   another stream during the action before the backward. The inputs of a chunk are not offloaded,
//   because the preceding ranks may still be sending them.
//
//   From one rank's part of a StepPlan (shared/step/step_part.h), lower() makes the Program of that
//   rank alone (Program::only): the ops of the whole Program in their order, and the groups and
//   messages that the rank takes part in, in their order. Its cost does not grow with the number of
//   ranks.
//
//   Buffers have the sizes of this project's executor; if a prediction is about another software
//   stack, that stack's sizes (shared/held/stack_sizes.h). Nothing else in a Program depends on the
//   stack.
#pragma once

#include "shared/hardware/software.h"
#include "shared/plan/plan.h"
#include "shared/program/program.h"
#include "shared/step/step_plan.h"

namespace polyphony {

// train: a full step. evaluate: the forwards alone, without saved activations and without a tail.
enum class StepKind : std::uint8_t { train, evaluate };

// Returns the Program. The layout must be legal (check_layout()), and the batch must have at least
// microbatches × dp samples.
Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan,
              const StepPlan& step, const Batch& batch, StepKind kind = StepKind::train,
              const SoftwareStack& stack = {});
// Does the same with the layout's own StepPlan.
Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan, const Batch& batch,
              StepKind kind = StepKind::train, const SoftwareStack& stack = {});

}  // namespace polyphony
