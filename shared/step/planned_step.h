// The works of a step under planner entrain (Layout::planner), and the actions that works
// add to an order when they are parts of a microbatch.
//
//   The planner (shared/planner/entrain.h) balances by item costs (ModuleCosts::item).
//   Encoders of several modalities count as one. Its slots are the language module's microbatches,
//   in pairs. For each pair an encoder has three works: the samples that the first slot keeps,
//   those that it defers, and those of the second slot. The deferred work runs its forward
//   after the first one, and its backward with the next slot, once its gradients have arrived: the
//   split backward.
//
//   An encoder with as many lanes as the language module keeps a replica's samples on one lane.
//   Other encoders assign the samples that all replicas have in a slot to their lanes, the most
//   expensive sample first to the least loaded lane.
#pragma once

#include "shared/planner/entrain.h"
#include "shared/step/assign.h"

namespace polyphony {

// Returns the work table of a batch. The branches of the plan must have item costs. `deferral`:
// Layout::deferral.
WorkTable planned_works(const Model& model, const Plan& plan, const Batch& batch,
                        bool deferral = true);

// Expands an order of actions on whole microbatches to one on works, where encoders have more
// works than the language module: the deferred ones, or the sub-microbatches of planner dip.
Actions with_parts(const Plan& plan, const Actions& slots);

// The effect of the planner on a batch: the work per microbatch and lane of the language module,
// for encoders and for the language module, in the unit of item costs.
struct PlannedWorks {
  std::vector<entrain::SampleWork> before, after;  // samples in the batch's order; as planned
  std::vector<entrain::SampleWork> of_samples;
  int samples = 0, deferred = 0;
};
// Returns the work of one sample for one branch, in the unit of item costs.
double sample_work(const Model& model, const Branch& branch, const Sample& sample);
// Compares the planner's assignment with the default one.
PlannedWorks compare_works(const Model& model, const Plan& plan, const Batch& batch,
                           bool deferral = true);

}  // namespace polyphony
