// The cost of one item (an image, a clip) for its encoder, and of one sample for the language
// module, as a function of its number of tokens x: square·x² + linear·x + constant
// (shared/planner/planner_costs.h, ItemCost). Planners balance microbatches by it.
//
//   The three coefficients are fitted by least squares of relative errors, none below zero, to the
//   prices of microbatches of one item each, at five sizes from the smallest to the largest of a
//   batch. Projectors count with the module that they read from. Language samples are priced as if
//   all their tokens were text.
//
// Source: Entrain, arXiv 2605.27918, section 4.1, which fits layers at 64 to 16k tokens, whatever
// the data.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "shared/planner/planner_costs.h"
#include "shared/scenario/scenario.h"
#include "shared/work/work_size.h"

namespace polyphony {

// Returns the fit to points (tokens, price). Prices must be above zero.
ItemCost fit_item_cost(const std::vector<std::pair<double, double>>& points);

// Returns the price of one microbatch of that size, in a unit of the caller's choice.
using WorkPrice = std::function<double(ModuleId module, const WorkSize& size)>;
// Returns the fit for the item sizes that occur in `batch`; all zeros if none occurs.
ItemCost fit_item_cost(const Model& model, ModuleId module, const Batch& batch,
                       const WorkPrice& price);
// Returns the fit in FLOPs, forward and backward. No profile is needed.
ItemCost item_flops(const Scenario& scenario, ModuleId module);

// Returns the cost of one item without the constant, which counts once per microbatch.
inline double item_work(const ItemCost& cost, double tokens) {
  return (cost.square * tokens + cost.linear) * tokens;
}

}  // namespace polyphony
