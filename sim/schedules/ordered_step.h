// One step of a scenario's layout with its own order of actions, verified and predicted:
// `polyphony schedules ORDER`.
//   bubble   the longest idle time of a rank in the language module's pipeline, in units: forward,
//            input and weight part take one unit, a whole backward two
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "shared/schedule/schedule.h"
#include "sim/prediction/figures.h"

namespace polyphony::sim {

// One rank along the language module's pipeline, of the first replica.
struct OrderedRank {
  std::string stages;  // "0 4"
  std::size_t actions = 0;
  int tapes = 0;  // saved activations in flight, at most
  Bytes peak{};
};

struct OrderedStep {
  std::string layout;  // in the words of a scenario file
  std::string words;   // as tables write it (sim/text/layout_words.h)
  Prediction prediction;
  Figures figures;
  std::vector<Actions> orders;  // of the language module alone, by rank along its pipeline
  std::vector<OrderedRank> ranks;
  long bubble = 0;
};
// Why an order cannot run.
struct IllegalOrder {
  std::string why;
};

// Verifies the layout's order and predicts the step by simulation. The layout must be accepted by
// check_layout(). Infeasible: the prediction has no answer, because the cluster lacks a link.
std::variant<OrderedStep, IllegalOrder, Infeasible> order_step(const Scenario& scenario,
                                                               const Layout& layout,
                                                               const Batch& batch,
                                                               const HardwareProfile& profile);

// Returns the orders as a CSV whose cells of one column run at the same time if all actions take
// equally long. The orders must be legal.
std::string columns_csv(const std::vector<Actions>& orders);

}  // namespace polyphony::sim
