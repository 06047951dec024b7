// A whole model as chunks on the ranks of one tensor-parallel group, connected along its edges, and
// the microbatches that it runs: for tests of layers without a Program.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/chunk/chunk.h"
#include "exec/data/dataset.h"
#include "shared/chunk/expand.h"

namespace polyphony::exec::testing {

// All samples as one work: what exec/work_input.h and WorkSize say of it, counted plainly.
struct Packed {
  WorkInput input;
  std::vector<WorkSize> sizes;  // by module
};
Packed pack(const Model& model, const std::vector<Sample>& samples, const Dataset& dataset,
            torch::Dtype dtype);

struct NetworkOptions {
  torch::Dtype dtype = torch::kFloat64;
  std::uint64_t seed = 1;
  bool sequence_parallel = false;
  bool cut = false;    // one layer a chunk; else one module
  bool split = false;  // backward_input of all chunks, then backward_weight
};

class Network {
 public:
  struct Part {
    ModuleId module;
    LayerRange layers;
    std::unique_ptr<Chunk> chunk;
    ChunkContext context;
  };
  Network(const Model& model, Communicator* tensor, const NetworkOptions& options);

  torch::Tensor forward(const Packed& work);  // the loss
  void backward();
  // Runs each part's forward and backward (or the halves of it), looking on.
  using Watch = std::function<void(const Part&, Phase, const std::function<void()>& run)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  // This rank's share of every gradient, by global name; copies of a tied matrix added up.
  std::map<std::string, torch::Tensor> gradients() const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  void run(const Part& part, Phase phase, const std::function<void()>& body) const;
  std::vector<torch::Tensor> inputs_of(std::size_t part) const;

  Model model_;
  NetworkOptions options_;
  int rank_ = 0;
  std::vector<Part> parts_;
  std::vector<torch::Tensor> outputs_;  // by part
  Watch watch_;
};

}  // namespace polyphony::exec::testing
