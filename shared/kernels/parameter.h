// The model of parameters: every parameter has a global name and shape, a way it is split over the
// tensor- and expert-parallel ranks, and flags that state which ranks hold copies and whose
// gradients are partial sums. Initial values, gradient sums, the global norm without double
// counting, checkpoints and parameter counts all follow from it.
//   Names: "language.block3.qkv.weight", "vision.patch_embedding.weight", "projector.fc1.bias".
//
// Matrices are stored [out, in] (y = x Wᵀ). Column-parallel weights are split along `out`,
// row-parallel weights along `in`. Shares are as equal as integers allow, so a vocabulary needs no
// padding.
//
// Fused projections, with A query heads, K key/value heads and head width D:
//   qkv is one matrix with out = (A + 2K)·D, laid out per key/value head as [q heads of the group |
//   k | v]. With tp ≤ K each rank has whole groups. With tp > K (K divides tp, tp divides A) a rank
//   has its share of one group's q heads and a copy of the k and v of the group.
//   gate_up interleaves gate and up rows (row 2i is gate i, row 2i + 1 is up i).
//   With attention sinks there is a parameter [A], one number per head. With an attention gate each
//   query head of qkv is followed by its gate.
//
// Latent attention (Rq query rank, Rkv key/value rank, R rotary_dim, Dv value_dim): q_down [Rq, H],
// kv_down [Rkv + R, H] and their norms are replicated. q_up [A(D + R), Rq] and kv_up [A(D + Dv),
// Rkv] are split by head, the latter laid out as [k | v]. A tensor-parallel rank has A/t heads.
//
// Linear attention, of K key and V value heads of width D, r = V/K, with the rows of each key head
// together:
//   linear_in [2(K + V)D + 2V, H]   [q | k | v of its r value heads | their output gates | their β
//                                   | their decays]
//   linear_conv [(2K + V)D, taps]   [q | k | v]
//   linear_decay.weight [V]         logarithms; linear_decay.bias [V]
//   linear_norm [D]                 the norm of every value head's output
//   out [H, V·D]
// A rank has K/t key heads with their value heads.
//
// Experts' parameters have the expert as dimension 0; their other dimensions are split as above. A
// router is replicated. If tensor-parallel ranks hold different rows between blocks (sequence
// parallelism), the router's gradient is a partial sum, like a norm's. Otherwise every rank
// computes the whole gradient, even if the experts are split.
//
// A diffusion layer computes its modulation (shift, scale, gate of each part) from time features
// with two matrices of its own, [R, 256] and [6H, R]. DiT (arXiv 2212.09748) instead has one MLP
// that all blocks share, 256·H + H², before a [6H, H] in each block, which would tie pipeline
// stages together. With R = H a block here has 256·H more and H² fewer parameters; over all of
// DiT-XL/2 that is 0.8 % more.
//
// A tied output matrix has the embedding's name. A chunk with both layers lists it once, in the
// embedding; a chunk with only the output layer has a copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/model/model.h"
#include "shared/work/interval.h"

namespace polyphony {

// Number of sine and cosine features of a diffusion item's time.
inline constexpr int kTimeFeatures = 256;

enum class Cut : std::uint8_t {
  replicated,
  rows,     // the first dimension (after the expert's)
  columns,  // the dimension after that
  heads     // rows of a fused qkv, by key/value head
};
enum class Initial : std::uint8_t { normal, zeros, ones, constant };
// When the gradient that one tensor-parallel rank computes for a replicated parameter is only a
// part of the sum.
enum class Partial : std::uint8_t {
  never,
  sequence,  // under sequence parallelism, where each rank sees its own rows
  always     // each rank sees its own heads or features
};

// What must stay in memory for the parameter's weight gradient if a schedule runs it as a separate
// op (shared/chunk/weight_sizes.cpp).
enum class Role : std::uint8_t {
  none,        // nothing: computed with the input gradient or with another parameter's gradient
  matrix,      // its input and the gradient of its output
  router,      // like a matrix, with the output gradient in fp32 or wider
  table,       // the gradient of the output only
  norm,        // its gradient, which the input-gradient op has already computed
  head_norms,  // q_norm, which also stands for k_norm: like norm, for heads
  low_rank,    // B of a LoRA pair: the output of A, and the gradient of its own output
  itself       // its own gradient, in fp32 or wider
};
// How the saved input of a matrix counts there.
enum class Input : std::uint8_t {
  gathered_again,         // gathered again under sequence parallelism, otherwise as saved
  whole,                  // kept as saved
  others,                 // counted elsewhere: with another matrix, or once per chunk
  others_unless_gathered  // counted elsewhere unless sequence parallelism gathers it
};
// The activation rows that the parameter is applied to.
enum class Rows : std::uint8_t {
  tokens,     // all rows of the microbatch
  own,        // those that the rank holds between blocks
  frames,     // two audio frames for each of these
  embedded,   // these, and class tokens
  loss,       // rows with a label
  items,      // one row per image or diffusion item
  condition,  // conditioning rows that a diffusion module's blocks read by cross-attention
  slots       // (token, expert) pairs
};

// A rank's place among the ranks that a chunk's parameters are cut over.
struct ShardIndex {
  int tensor = 1, tensor_index = 0;
  int expert = 1, expert_index = 0;
  bool operator==(const ShardIndex&) const = default;
};

// `count` elements that are consecutive in both the local and the global tensor, in row-major
// order.
struct ElementRun {
  std::int64_t local = 0, global = 0, count = 0;
  bool operator==(const ElementRun&) const = default;
};

struct Parameter {
  std::string name;
  int layer = 0;                    // position in the module's layer stack
  std::vector<std::int64_t> shape;  // global
  Role role = Role::none;
  Rows rows = Rows::tokens;
  Input input = Input::gathered_again;
  int held_width = 0;    // width of the saved rows, if the input is a part of them; 0: its own
  bool adapted = false;  // LoRA adds a low-rank pair to it
  bool after_attention = false;  // its input is the output of attention
  Cut cut = Cut::replicated;
  Initial initial = Initial::normal;
  double deviation = 0;  // standard deviation for Initial::normal
  double constant = 0;   // value for Initial::constant
  bool decay = false;    // weight decay applies (to matrices, not to norms and biases)
  Partial partial = Partial::sequence;
  bool expert = false;  // dimension 0 counts experts, split over the expert-parallel ranks
  bool trained = true;  // has gradients and updates
  bool tied = false;    // embedding and output matrix are the same parameter
  // The copy of a tied matrix in a chunk that has only the output layer. It owns no elements, and
  // stays equal to the embedding because gradients are summed.
  bool copy = false;
  int key_value_heads = 0;  // for Cut::heads
  int group_heads = 0;      // for Cut::heads: query heads per key/value head
  int head_dim = 0;         // for Cut::heads
  bool operator==(const Parameter&) const = default;

  std::int64_t count() const;  // elements of the global tensor
  // Returns the dimension that is split over tensor-parallel ranks, or -1 if none is.
  int cut_dimension() const;
  // Returns what `shard` holds along the split dimension, in the order of its local tensor ({0, 1}
  // if no dimension is split). owned_parts() omits what an earlier tensor-parallel rank also holds,
  // so that over all ranks every element is owned exactly once.
  std::vector<Interval> parts(const ShardIndex& shard) const;
  std::vector<Interval> owned_parts(const ShardIndex& shard) const;
  // Returns the experts that `shard` holds, or {0, 1} if the parameter has no expert dimension.
  Interval experts(const ShardIndex& shard) const;
  std::vector<std::int64_t> local_shape(const ShardIndex& shard) const;
  std::int64_t local_count(const ShardIndex& shard) const;
  // Return all elements that `shard` holds, or owns, sorted by local position.
  std::vector<ElementRun> runs(const ShardIndex& shard) const;
  std::vector<ElementRun> owned_runs(const ShardIndex& shard) const;
  // Returns whether gradients must be summed over the tensor-parallel group: those of the whole
  // local tensor, or, if shares_heads(), those of its last part (k and v) only.
  bool sums_over_tensor(const ShardIndex& shard, bool sequence_parallel) const;
  // Returns whether several tensor-parallel ranks hold copies of the same key and value heads.
  bool shares_heads(const ShardIndex& shard) const {
    return cut == Cut::heads && shard.tensor > key_value_heads;
  }
};

}  // namespace polyphony
