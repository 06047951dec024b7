// The parameter algebra: every parameter has a global name and shape, how it is cut over the
// tensor- and expert-parallel ranks, who holds copies, and whose gradients are partial sums.
// Initial values, gradient sums, the global norm without double counting, checkpoints and parameter
// counts all follow from it.
//   Matrices are stored [out, in] (y = x Wᵀ). Column-parallel weights are cut along `out`,
//   row-parallel along `in`; shares are as equal as integers allow (a vocabulary needs no padding).
//   Fused projections: qkv is one matrix with out = (A + 2K)·D, laid out per key/value head as
//   [q heads of the group | k | v]; tp ≤ K gives each rank whole groups, tp > K (K divides tp, tp
//   divides A) its share of one group's q heads and a copy of its k and v. gate_up is laid out with
//   gate and up rows interleaved (row 2i gate i, row 2i+1 up i).
//   Latent attention: q_down [Rq, H] and kv_down [Rkv + R, H] whole on every rank, their norms too;
//   q_up [A(D + R), Rq], kv_up [A(D + Dv), Rkv] by head, the latter [k | v] (R rotary_dim, Dv
//   value_dim). Under tensor parallelism a rank has A/t heads.
//   Linear attention, of K key and V value heads of width D, r = V/K, each key head's rows together:
//   linear_in [2(K + V)D + 2V, H] with [q | k | v of its r value heads | their output gates | their β
//   | their decays], linear_conv [(2K + V)D, taps] with [q | k | v], linear_decay.weight [V]
//   (logarithms) and .bias [V], linear_norm [D] of every value head's output, out [H, V·D]. A rank
//   has K/t key heads with their value heads.
//   Sinks [A], a head's own. With a gate each query head of qkv is followed by its gate.
//   Experts' parameters have the expert as dimension 0; the other dimensions are cut as said above.
//   A router is whole on every rank. Where tensor-parallel ranks have their own rows between blocks
//   its gradient is a partial sum, like a norm's; else every rank has the whole of it, even when
//   the experts behind it are cut.
//   A diffusion layer makes its modulation (shift, scale, gate of each part) of the features of
//   time by two matrices of its own, [R, 256] and [6H, R]. DiT (arXiv 2212.09748) has an MLP that
//   all blocks share, 256·H + H², before [6H, H] in each: it would tie pipeline stages. With R = H
//   here are 256·H more a block and H² fewer: of all of DiT-XL/2 0.8 % more. A tied matrix has the
//   embedding's name. A range with both layers has it once, in the embedding; a range with the
//   output alone has a copy of it.
// Names: "language.block3.qkv.weight", "vision.patch_embedding.weight", "projector.fc1.bias".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/model/model.h"
#include "shared/work/interval.h"

namespace polyphony {

// Sines and cosines of a diffusion item's time.
inline constexpr int kTimeFeatures = 256;

enum class Cut : std::uint8_t {
  replicated,
  rows,     // the first dimension (after the expert's)
  columns,  // the dimension after that
  heads     // rows of a fused qkv, by key/value head
};
enum class Initial : std::uint8_t { normal, zeros, ones };
// When the gradient that one tensor-parallel rank computes for a replicated parameter is only part
// of the sum: never; under sequence parallelism, where each rank sees its own rows; always, where
// each rank sees its own heads or features.
enum class Partial : std::uint8_t { never, sequence, always };

// What a weight part that is an op of its own needs for the parameter (shared/chunk/weight_sizes.cpp):
// a matrix what met it and the gradient of what it made; a router this in fp32 at least; a table the
// gradient alone; a norm both sides and its statistics, that of q's heads those of k and v, too; B of
// a low-rank pair what A made; itself its own gradient, in fp32 at least. none: its gradient is made
// with the inputs', or with another's.
enum class Role : std::uint8_t { none, matrix, router, table, norm, head_norms, low_rank, itself };
// A matrix' input there: made again where it is gathered; kept as it is; counted elsewhere (with another
// matrix', or once for all blocks of a chunk), always or unless it is gathered.
enum class Input : std::uint8_t { gathered_again, whole, others, others_unless_gathered };
// The rows that meet it: all of the work item; those of a rank between blocks, 2 frames for each of
// these, these with class tokens; rows with a label; items; what a diffusion module's blocks read
// across; choices of experts.
enum class Rows : std::uint8_t { tokens, own, frames, embedded, loss, items, condition, slots };

// A rank's place among the ranks that a chunk's parameters are cut over.
struct ShardIndex {
  int tensor = 1, tensor_index = 0;
  int expert = 1, expert_index = 0;
  bool operator==(const ShardIndex&) const = default;
};

// `count` consecutive elements of the global tensor, in row-major order on both sides.
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
  int held_width = 0;            // of an input that lies in wider rows; 0: its own
  bool adapted = false;          // LoRA puts a pair beside it
  bool after_attention = false;  // what it reads is what attention makes
  Cut cut = Cut::replicated;
  Initial initial = Initial::normal;
  double deviation = 0;  // of Initial::normal
  bool decay = false;    // takes weight decay (matrices do; norms and biases do not)
  Partial partial = Partial::sequence;
  bool expert = false;      // dimension 0 counts experts, cut over the expert-parallel ranks
  bool trained = true;      // takes gradients and updates
  bool tied = false;        // embedding and output matrix in one
  bool copy = false;        // of a tied matrix, where a chunk has the output without the embedding:
                            // owns nothing; the embedding's equal once their gradients are summed
  int key_value_heads = 0;  // of Cut::heads
  int group_heads = 0;      // of Cut::heads: query heads per key/value head
  int head_dim = 0;         // of Cut::heads
  bool operator==(const Parameter&) const = default;

  std::int64_t count() const;  // of the global tensor
  // The dimension that `cut` cuts; -1: none.
  int cut_dimension() const;
  // What `shard` holds along the cut dimension, in the order of its local tensor. `owned`: only
  // what no tensor rank before it holds, so that over all ranks every element occurs once.
  std::vector<Interval> parts(const ShardIndex& shard) const;
  std::vector<Interval> owned_parts(const ShardIndex& shard) const;
  // The same along the expert dimension; the whole of it when there is none.
  Interval experts(const ShardIndex& shard) const;
  std::vector<std::int64_t> local_shape(const ShardIndex& shard) const;
  std::int64_t local_count(const ShardIndex& shard) const;
  // All elements that `shard` holds, or owns, by local position.
  std::vector<ElementRun> runs(const ShardIndex& shard) const;
  std::vector<ElementRun> owned_runs(const ShardIndex& shard) const;
  // Elements whose gradients must be summed over the tensor-parallel group: of the whole local
  // tensor, or (shared key and value heads) of the last part only.
  bool sums_over_tensor(const ShardIndex& shard, bool sequence_parallel) const;
  bool shares_heads(const ShardIndex& shard) const {
    return cut == Cut::heads && shard.tensor > key_value_heads;
  }
};

}  // namespace polyphony
