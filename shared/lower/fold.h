// Folding: the plan of a few ranks that represent all ranks which do the same at the same time, and
// the batch that these ranks work on. Groups keep their true members, so that collectives are
// priced over all of them. Represented ranks get no ops; their messages are those of the rank that
// represents them. What is kept of a branch is stated by Branch::kept (shared/plan/plan.h).
//
// Which ranks are kept:
//   sets      Sets of lanes that no link joins to other lanes, where all samples are equal and
//             every lane has as many: the works are those of the first of Plan::alike equal sets,
//             and the batch its samples. Otherwise all works are kept.
//   lanes     One lane per branch and pipeline stage: the first. If lanes have unequal numbers of
//             samples, the last, which has the most. If cells span different numbers of nodes, the
//             lane whose cells span the most.
//   tensor    One rank of a tensor-parallel group: the first, or the last one if the last lane is
//             kept. Where grids on the same ranks differ and one rank is not enough (several
//             context-parallel ranks, bridges with leaders, nodes that differ): every gcd(tp)-th
//             rank of a block of ranks in which lanes of all grids begin and end.
//   contexts  All, except for a text-only model whose tokens are assigned evenly.
//
// Folding is exact (the step up to rounding, the worst memory to the byte) if lanes have equal
// numbers of samples, a microbatch of an encoder feeds one microbatch, and groups lie in nodes in
// the same way. Otherwise the place of one lane, and what is near it, counts for all, and the step
// may be off in either direction. tests/shared/plan/fold_random_test.cpp measures by how much;
// shared/README.md, "Folding", states its numbers. Links shared by ranks of several sets carry the
// flows of the kept ranks only.
#pragma once

#include <cstdint>
#include <variant>

#include "shared/plan/plan.h"

namespace polyphony {

struct Folded {
  Plan plan;
  Batch batch;
};
// What to do if the samples of lanes differ. alike: refuse to fold. busiest: the lane with the most
// work in the step represents all, which gives an estimate.
enum class Lanes : std::uint8_t { alike, busiest };
// Returns the folded plan; or Infeasible, with the reason, if samples or devices differ, an
// encoder's lanes lie across pipeline stages, or no two ranks do the same.
std::variant<Folded, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan,
                                      const Batch& batch, Lanes lanes = Lanes::alike);

// Returns false if no plan of this layout folds, whatever the batch: what fold() finds from the
// grids alone.
bool may_fold(const Model& model, const Layout& layout);

}  // namespace polyphony
