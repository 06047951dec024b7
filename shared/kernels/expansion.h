// What is inside a compute op: the kernels each rank runs after sharding, and the collectives
// between them, in order. One truth: the simulator prices it, verify() compares its collective list
// over the group, the executor checks that what it issues is that list. Counts and bytes are per
// rank. A test counts the executor's real FLOPs against it.
//   GEMM [m,k]×[k,n]: 2mnk flops, (mk + kn + mn) elements.   Attention over P query-key pairs:
//   4·P·A·D forward, 8·P·A·D backward (10 when the scores are recomputed, as flash kernels do;
//   profiles fold that into their efficiency).   Experts: shared/layers/experts.h.
// A backward visits every GEMM twice (input and weight gradient), each as large as the forward; a
// frozen module skips the weight part, a module with nothing trainable upstream skips the input
// part of its first layer. What is recomputed is part of the backward that needs it, right before
// it. Source: Korthikanti et al., arXiv 2205.05198 (GEMM list of a
// tensor-parallel transformer layer); attention pairs: own derivation.
#pragma once

#include <vector>

#include "shared/model/layout.h"
#include "shared/model/model.h"
#include "shared/number_format.h"
#include "shared/work/work_size.h"

namespace polyphony {

enum class KernelKind : std::uint8_t { gemm, attention, elementwise, embedding, loss };

struct Kernel {
  KernelKind kind = KernelKind::gemm;
  LayerKind layer = LayerKind::decoder_block;
  Flops flops{};
  Bytes bytes{};     // read + written in the compute format
  int launches = 1;  // device kernels: each pays dispatch time once
  // GEMM shape per launch. Attention: m keys that a query meets in the mean, n 1 forward and 2
  // backward, k the width of a head. 0 otherwise.
  std::int64_t m = 0, n = 0, k = 0;
  bool experts = false;  // a GEMM of experts side by side
  bool operator==(const Kernel&) const = default;
};
// Of an expansion's kernels, [begin, end).
struct KernelRun {
  std::uint32_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

// The product of its own layer beside which software may run a collective of a column-parallel layer's backward: the
// gather of x, wanted for the weight gradient, beside the input gradient; the sum of that beside the weight gradient.
// Source: Korthikanti et al., arXiv 2205.05198, §4.2.2.
enum class Beside : std::uint8_t { nothing, input_gradient, weight_gradient };

// Bytes: all_reduce, the array; all_gather and reduce_scatter, the whole of all members together;
// all_to_all, what this rank sends, to itself included; of rows on their way back, what it
// receives, which is what it sent: its own tokens' rows. Where sequence parallelism gives ranks
// unequal rows, the largest share.
struct InnerCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{};
  GroupKind group = GroupKind::tensor;
  bool beside_attention = false;  // it runs beside the attention of the keys that came before
  KernelRun beside{};             // it runs beside these: the product of another piece of rows
  Beside may_hide = Beside::nothing;
  Kernel product{};  // of may_hide
  // What is moved; how it may be scheduled does not count.
  bool operator==(const InnerCollective& other) const {
    return kind == other.kind && bytes == other.bytes && group == other.group;
  }
};
struct Expansion {
  std::vector<Kernel> kernels;
  std::vector<InnerCollective> collectives;
  bool operator==(const Expansion&) const = default;
};

// Positions of a stack: any.
inline constexpr LayerRange kAllLayers{0, 0xFFFF};

// How a layer range runs on one rank.
struct ChunkContext {
  int tp = 1;
  bool sp = false;
  int tp_pieces = 1;
  int cp = 1;
  ContextAttention cp_attention = ContextAttention::all_gather;
  int cp_heads = 0;  // 0: all of the rank's at once
  int ep = 1;
  int expert_tp = 1;  // tensor-parallel ranks of one expert: tp, or 1
  Recompute recompute = Recompute::none;
  LayerRange recomputed = kAllLayers;  // stack positions: of the blocks there
  NumberFormat precision = NumberFormat::fp32;
  bool input_grad = true;   // the backward must produce the gradient of its input
  bool edge_grad = true;    // and, of inputs over model edges after the first layer, theirs
  int added_edges = 0;      // model edges whose rows are added before its first layer
  bool weight_grad = true;  // the module is trainable
  double tail = 1;          // of attention forward (shared/cost/attention_tail.h)
};

// A chunk on one of the tensor-parallel ranks. Under sequence parallelism the first has most rows.
struct RankContext : ChunkContext {
  int tensor_index = 0;
  RankContext(const ChunkContext& context, int tensor_index_ = 0)
      : ChunkContext(context), tensor_index(tensor_index_) {}
};

}  // namespace polyphony
