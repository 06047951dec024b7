// Plan + StepPlan + one global batch -> Program. Deterministic: the same StepPlan gives the same
// Program (equal hash).
//   Of a StepPlan's part (shared/step/step_part.h): the Program of that rank alone, Program::only. Its
//   ops are those of the whole Program in their order, its groups and messages those that the rank
//   takes part in, in their order; it costs what the rank does, however many others there are.
//   What each work item holds and in which order a rank takes its actions is the StepPlan's; what is
//   placed here follows from it. Receives are posted at most StepPlan::receive_slots actions of their
//   chunk ahead of the compute op that reads them. Fully sharded parameters are gathered one chunk ahead of their use;
//   divided gradients are summed after every backward. Step tail of a rank: what is left of the
//   gradient sums, chunk by chunk, the world's step scalars, one update, gathers of what the update
//   changed.
//   Tapes that wait in the host's memory (ModuleLayout::offload_activations, Recipe::offload): of forwards
//   whose backward is at least three actions on, since an action passes beside either copy. Out, on a stream of
//   its own, right after the forward; an action begins when the tapes of all actions but the one before it
//   have left, so that a slow link makes a step longer and not larger. Back, on another, while the action
//   before the backward runs. A chunk's inputs stay: the ranks before may still be sending them.
// Evaluation: the forwards alone, nothing kept, no tail.
// Buffers are as large as the executor's own; where a prediction is about another software stack,
// as large as that one's (shared/held/stack_sizes.h). Nothing else in a Program depends on it.
#pragma once

#include "shared/hardware/software.h"
#include "shared/plan/plan.h"
#include "shared/program/program.h"
#include "shared/step/step_plan.h"

namespace polyphony {

// Needs a layout that check_layout() accepts and a batch of at least microbatches × dp samples.
enum class StepKind : std::uint8_t { train, evaluate };

Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan,
              const StepPlan& step, const Batch& batch, StepKind kind = StepKind::train,
              const SoftwareStack& stack = {});
// The layout's own StepPlan.
Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan, const Batch& batch,
              StepKind kind = StepKind::train, const SoftwareStack& stack = {});

}  // namespace polyphony
