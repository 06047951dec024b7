// Fits the cost of a microbatch as square · attended pairs + linear · tokens + constant
// (shared/planner/planner_costs.h, WorkCurve), by least squares of relative errors, no coefficient
// below zero.
#pragma once

#include <vector>

#include "shared/planner/planner_costs.h"

namespace polyphony {

struct CurvePoint {
  double tokens = 0, pairs = 0, value = 0;
};
// Returns the best fit to the points whose value is above zero. Among equally good fits, the one
// that is linear in tokens. Without such points, a curve of zeros.
WorkCurve fit_curve(const std::vector<CurvePoint>& points);

}  // namespace polyphony
