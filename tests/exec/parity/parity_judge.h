// Rank 0's side of a parity case (tests/exec/parity/parity.h): gathers the ranks' reports,
// assembles shards through Parameter::cut, and measures the distance to the reference.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shared/chunk/parameters.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/reference/reference.h"

namespace polyphony::exec::testing {

// What a rank reports to rank 0, everything as fp64.
struct Report {
  torch::Tensor scalars;  // [steps, 3]: loss, norm, finite
  // What it holds, [pieces, 4]: index in whole_model(), parameter group of the rank, first and last
  // + 1 element of the local tensor. The tensors below have the elements of the pieces,
  // concatenated.
  torch::Tensor pieces;
  torch::Tensor moments;  // after step 1: AdamW's first moments; NaN if there is none
  torch::Tensor values;   // after the last step
  torch::Tensor times;    // [ops of the rank, 2] of the last step
  // [rows, 2], flat: predicted id and loss, for the microbatches whose head the rank runs
  torch::Tensor predictions;
  // [steps, 4]: PeakMemory (tests/exec/parity/parity_memory.h), in its order.
  torch::Tensor memory;
  std::vector<torch::Tensor*> parts() {
    return {&scalars, &pieces, &moments, &values, &times, &predictions, &memory};
  }
};
// All parameters of the model, in module and stack order.
std::vector<Parameter> whole_model(const Model& model);

using GatheredMap = std::map<std::string, torch::Tensor>;  // whole parameters, from their shards

// The reference results of a case: its steps, and the labels that it predicts afterwards for each
// sample of the batch of step 0.
struct Truth {
  std::vector<ReferenceStep> steps;
  std::vector<std::vector<Answer>> answers;
};

class Judge {
 public:
  // Takes the case's Programs: of its first and last step, and of the evaluation afterwards.
  Judge(const Case& c, Program first, Program last, Program evaluation);

  // Returns why the case cannot start; empty if it can.
  std::string objection() const;
  // `reports`: by rank. `apart`, `queued`: as for find_disorder().
  Outcome judge(const std::vector<Report>& reports, double apart = 0, bool queued = false);

 private:
  void fault(const std::string& text);  // the first one is kept
  GatheredMap gather(const std::vector<Report>& reports, bool moments);
  void compare_scalars(const std::vector<Report>& reports, const std::vector<ReferenceStep>& steps);
  void compare_gradients(const GatheredMap& moments, const ReferenceStep& step);
  void compare_values(const GatheredMap& values, const ReferenceStep& step);
  void compare_memory(const std::vector<Report>& reports);
  void compare_predictions(const std::vector<Report>& reports,
                           const std::vector<std::vector<Answer>>& answers);

  Case case_;
  Scenario scenario_;
  std::unique_ptr<Dataset> dataset_;
  Program first_, last_, evaluation_;
  Outcome outcome_;
};

}  // namespace polyphony::exec::testing
