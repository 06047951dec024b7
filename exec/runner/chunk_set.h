// The chunks that one rank holds, with the stores of their parameters
// (exec/parameters/held_parameters.h) and the communicators they need. Made once from a Program's
// parameter groups.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "exec/chunk/chunk.h"
#include "exec/parameters/held_parameters.h"
#include "shared/plan/links.h"
#include "shared/program/program.h"
#include "shared/scenario/scenario.h"

namespace polyphony::exec {

torch::Dtype torch_dtype(NumberFormat format);

struct HeldGroup {
  ParamGroup group;
  std::unique_ptr<HeldParameters> store;
  bool counts = true;  // whether this copy of the parameters enters the global norm (one copy does)
};
struct HeldChunk {
  ParamGroup group;                // without experts
  std::vector<ChunkInput> inputs;  // shared/plan/links.h
  bool head = false;               // ends in a loss
  std::unique_ptr<Chunk> chunk;
  std::vector<HeldGroup> parameters;  // of the chunk, then of its experts, if any
};

class ChunkSet {
 public:
  // Collective over all ranks: creates the communicators of the groups.
  // Chunks begin with the scenario's published weights if `pretrained`.
  ChunkSet(Transport& transport, const Scenario& scenario, const Program& structure, bool perturb,
           bool pretrained, torch::Device device);

  HeldChunk& at(ModuleId module, LayerRange layers);
  // Returns the store of one of this rank's parameter groups, which may be from any Program of the
  // run.
  HeldGroup& of(const ParamGroup& group);
  std::vector<HeldChunk>& all() { return chunks_; }
  Communicator& communicator(GroupId group) { return *groups_[group.value]; }

 private:
  void make_groups(const Program& structure);
  void add(const Scenario& scenario, const Program& structure, const ParamGroup& group,
           bool perturb, const PretrainedModule* pretrained);
  HeldGroup hold(const Program& structure, const ParamGroup& group, Chunk& chunk);
  Communicator* find(GroupId group) { return group.valid() ? groups_[group.value].get() : nullptr; }

  Transport& transport_;
  Rank rank_;
  torch::Device device_;
  std::vector<std::unique_ptr<Communicator>> groups_;  // by GroupId; null where not a member
  std::vector<HeldChunk> chunks_;
  std::map<std::pair<ModuleId, LayerRange>, std::size_t> places_;
};

}  // namespace polyphony::exec
