// What one step needs on one rank: the Program of its batch and the inputs of the work items this
// rank runs. Made ahead of time on a thread of its own while the step before trains.
#pragma once

#include <cstdint>
#include <future>
#include <map>

#include "exec/data/dataset.h"
#include "shared/plan/lower.h"

namespace polyphony::exec {

struct StepData {
  std::uint64_t step = 0;
  Program program;
  std::map<WorkId, WorkInput> inputs;
};

// Packs what the rank's compute ops read: pixels where it embeds patches, tokens and labels where
// it runs the language module, latents where a diffusion module begins or ends. Tensors are on
// `device`.
std::map<WorkId, WorkInput> pack_inputs(const Program& program, Rank rank, const Dataset& dataset,
                                        Draw draw, torch::Device device = torch::kCPU);

class StepLoader {
 public:
  // All arguments must outlive the loader.
  StepLoader(const Scenario& scenario, const Layout& layout, const Plan& plan,
             const Dataset& dataset, Rank rank, torch::Device device)
      : scenario_(scenario),
        layout_(layout),
        plan_(plan),
        dataset_(dataset),
        rank_(rank),
        device_(device) {}
  ~StepLoader();

  // The data of `step`; starts loading step + 1 before it returns. What loading threw is thrown
  // here.
  StepData take(std::uint64_t step);

 private:
  StepData load(std::uint64_t step) const;

  const Scenario& scenario_;
  const Layout& layout_;
  const Plan& plan_;
  const Dataset& dataset_;
  Rank rank_;
  torch::Device device_;
  std::uint64_t ahead_step_ = 0;
  std::future<StepData> ahead_;
};

}  // namespace polyphony::exec
