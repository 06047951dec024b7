// The contents of a compute op: the kernels that one rank runs after sharding, and the collectives
// between them, in order. This is the single definition that every other part uses: the simulator
// prices it, verify() compares the collectives of all ranks of a group, and the executor checks
// that it issues exactly this list. Counts and bytes are per rank; a test compares them with the
// FLOPs that the executor really performs.
//   GEMM [m,k]×[k,n]   2mnk flops, (mk + kn + mn) elements read and written
//   attention          P query-key pairs: 4·P·A·D flops forward, 8·P·A·D backward (10 when scores
//                      are recomputed, as flash kernels do; profiles fold that into efficiency)
//   experts            shared/layers/experts.h
//
// A backward pass contains each GEMM twice (input and weight gradient), each as large as in the
// forward pass. A frozen module skips the weight gradients. A module with nothing trainable
// upstream skips the input gradient of its first layer. Recomputation is part of the backward op
// that needs it and comes right before its use.
// Source: Korthikanti et al., arXiv 2205.05198 (GEMM list of a tensor-parallel transformer layer);
// attention pairs: own derivation.
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
  // GEMM: its shape per launch. Attention: m is the mean number of keys per query, n is 1 in the
  // forward pass and 2 in the backward pass, k is the width of a head. Otherwise 0.
  std::int64_t m = 0, n = 0, k = 0;
  bool experts = false;  // a grouped GEMM: one GEMM of the same shape per expert
  bool operator==(const Kernel&) const = default;
};
// Range [begin, end) of the kernels of an expansion.
struct KernelRun {
  std::uint32_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

// The GEMM of the same layer that a software stack may overlap with a collective in the backward
// pass of a column-parallel layer:
//   input_gradient   overlaps the gather of the layer's input x, which the weight gradient needs
//   weight_gradient  overlaps the sum of the input gradients
// Source: Korthikanti et al., arXiv 2205.05198, §4.2.2.
enum class Beside : std::uint8_t { nothing, input_gradient, weight_gradient };

// One collective inside a compute op. What `bytes` counts depends on the kind:
//   all_reduce                  the array
//   all_gather, reduce_scatter  the whole array of all ranks of the group
//   all_to_all                  what this rank sends, including to itself; on the way back what it
//                               receives, which equals what it sent: the rows of its own tokens
// If sequence parallelism gives ranks unequal numbers of rows, the largest share counts.
struct InnerCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{};
  GroupKind group = GroupKind::tensor;
  bool beside_attention = false;  // overlapped with attention to the keys that arrived before
  KernelRun beside{};  // kernels it is overlapped with: the GEMM of another chunk of rows
  Beside may_hide = Beside::nothing;
  Kernel product{};  // the GEMM that may_hide names
  // Compares what is moved, not how it may be scheduled.
  bool operator==(const InnerCollective& other) const {
    return kind == other.kind && bytes == other.bytes && group == other.group;
  }
};
struct Expansion {
  std::vector<Kernel> kernels;
  std::vector<InnerCollective> collectives;
  bool operator==(const Expansion&) const = default;
};

// Matches every position of a layer stack.
inline constexpr LayerRange kAllLayers{0, 0xFFFF};

// How a chunk (a range of layers) runs on one rank.
struct ChunkContext {
  int tp = 1;
  bool sp = false;
  int tp_pieces = 1;
  int cp = 1;
  ContextAttention cp_attention = ContextAttention::all_gather;
  int cp_heads = 0;  // key/value heads gathered at once; 0: all heads of the rank
  int ep = 1;
  int expert_tp = 1;  // tensor-parallel ranks of one expert: tp, or 1
  Recompute recompute = Recompute::none;
  LayerRange recomputed = kAllLayers;  // stack positions whose blocks are recomputed
  NumberFormat precision = NumberFormat::fp32;
  bool input_grad = true;   // the backward pass must produce the gradient of the chunk's input
  bool edge_grad = true;    // it must also produce gradients of inputs received over model edges
  int added_edges = 0;      // model edges whose rows are added before the chunk's first layer
  bool weight_grad = true;  // the module is trainable
  double tail = 1;          // factor on attention forward (shared/cost/attention_tail.h)
};

// A chunk on one given tensor-parallel rank. Ranks differ under sequence parallelism, where the
// first has the most rows.
struct RankContext : ChunkContext {
  int tensor_index = 0;
  RankContext(const ChunkContext& context, int tensor_index_ = 0)
      : ChunkContext(context), tensor_index(tensor_index_) {}
};

}  // namespace polyphony
