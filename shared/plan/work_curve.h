// Curves of what works cost, in parts per pair that attends, per token and per work, fitted by least squares
// of relative errors, no part below zero (shared/model/layout.h, WorkCurve).
#pragma once

#include <vector>

#include "shared/model/layout.h"

namespace polyphony {

struct CurvePoint {
  double tokens = 0, pairs = 0, value = 0;
};
// Points above zero count; of equal fits the one that is linear in tokens. No points: nothing.
WorkCurve fit_curve(const std::vector<CurvePoint>& points);

}  // namespace polyphony
