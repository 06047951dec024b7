// What an item costs its encoder, and a sample the language module, as a square, linear and constant
// part of its tokens (shared/model/layout.h, ItemCost): what planners weigh by. Fitted by least squares of
// relative errors, no part below zero, to a price of works of one item each, at five sizes from the
// smallest to the largest of a batch. Projectors count with the module that they read from. Of language
// samples as if all their tokens were text. Source: Entrain, arXiv 2605.27918, section 4.1, which fits
// layers at 64 to 16k tokens, whatever the data.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "shared/scenario/scenario.h"
#include "shared/work/work_size.h"

namespace polyphony {

// (tokens, price) of several sizes. Prices above zero.
ItemCost fit_item_cost(const std::vector<std::pair<double, double>>& points);

using WorkPrice = std::function<double(ModuleId module, const WorkSize& size)>;
ItemCost fit_item_cost(const Model& model, ModuleId module, const Batch& batch,
                       const WorkPrice& price);
// Priced by FLOPs, forward and backward, at one a second.
ItemCost item_flops(const Scenario& scenario, ModuleId module);

// Without the constant part, which a work has once.
inline double item_work(const ItemCost& cost, double tokens) {
  return (cost.square * tokens + cost.linear) * tokens;
}

}  // namespace polyphony
