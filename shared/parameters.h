// The parameter algebra: every parameter has a global name and shape, how it is cut over the
// tensor-parallel ranks, and who holds copies. Initial values, gradient sums, the global norm
// without double counting, checkpoints and parameter counts all follow from it.
//   Matrices are stored [out, in] (y = x Wᵀ). Column-parallel weights are cut along `out`,
//   row-parallel along `in`. Fused projections: language qkv is one matrix with out = (A + 2K)·D,
//   laid out per key/value head as [q heads of the group | k | v], so that a cut into tp equal
//   parts gives each rank whole groups (tp divides K); gate_up is laid out with gate and up rows
//   interleaved in tp-independent pairs (row 2i gate i, row 2i+1 up i).
// Names: "language.block3.qkv.weight", "vision.patch_embedding.weight", "projector.fc1.bias".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/model.h"

namespace polyphony {

enum class Cut : std::uint8_t {
  replicated,
  rows,
  columns
};  // rows: dimension 0; columns: dimension 1
enum class Initial : std::uint8_t { normal, zeros, ones };

struct Parameter {
  std::string name;
  int layer = 0;                    // position in the module's layer stack
  std::vector<std::int64_t> shape;  // global
  Cut cut = Cut::replicated;
  Initial initial = Initial::normal;
  double deviation = 0;  // of Initial::normal
  bool decay = false;    // takes weight decay (matrices do; norms and biases do not)
  bool operator==(const Parameter&) const = default;

  std::int64_t count() const;  // of the global tensor
  std::vector<std::int64_t> local_shape(int tp) const;
  // Whether rank t of tp counts this parameter in the global norm (a replicated one is counted
  // once, by t = 0).
  bool counted_by(int t) const { return cut != Cut::replicated || t == 0; }
};

// In stack order; deterministic. Layers outside `range` are skipped.
std::vector<Parameter> parameters(const Module& module, LayerRange range);
std::vector<Parameter> parameters(const Module& module);
std::int64_t parameter_count(const Module& module);

// The seed of a parameter's values: element i of the global tensor is random_normal(seed,
// i)·deviation (shared/random.h).
std::uint64_t parameter_seed(std::uint64_t seed, const std::string& name);
}  // namespace polyphony
