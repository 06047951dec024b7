// The works of a step under planner entrain (Layout::planner), and what works that are parts of a
// microbatch add to orders.
//   entrain  shared/planner/entrain.h over item costs (ModuleLayout::item_cost). Encoders of several
//            modalities weigh as one. Its slots are the language module's microbatches; of two slots that
//            are a pair, encoders have three works: what the first keeps, what it defers, the second's.
//            A deferred work runs forward after the one it was part of, and back with the next slot, when
//            its gradients have come: the split backward.
//   Encoders with as many lanes as the language module keep a replica's samples on one lane; others
//   deal what all replicas have in a slot to their lanes, largest work first to the least loaded.
#pragma once

#include "shared/planner/entrain.h"
#include "shared/step/assign.h"

namespace polyphony {

// A plan whose branches have item costs.
WorkTable planned_works(const Model& model, const Plan& plan, const Batch& batch);

// Of actions whose encoders' works are microbatches, those of works, where encoders have more works than
// the language module: what is deferred, or the sub-microbatches of planner dip.
Actions with_parts(const Plan& plan, const Actions& slots);

// What a planner makes of a batch, in units of item costs, by microbatch and lane of the language
// module: of what an encoder microbatch and a language one hold.
struct PlannedWorks {
  std::vector<entrain::SampleWork> before, after;  // in the order of the batch; planned
  std::vector<entrain::SampleWork> of_samples;
  int samples = 0, deferred = 0;
};
// Of one sample for one branch.
double sample_work(const Model& model, const Branch& branch, const Sample& sample);
PlannedWorks compare_works(const Model& model, const Plan& plan, const Batch& batch);

}  // namespace polyphony
