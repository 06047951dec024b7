// What a training framework adds to the device's own physics: what it fuses, how it computes
// attention, what it sums gradients in, what its host costs. Part of a hardware profile, which
// holds for one stack; the defaults are this project's executor, whose kernels shared/chunk/expand.h
// counts.
//
// Attention, eager: the scores of whole squares are written and read kScorePasses times.
//
// Attention's own backward may have kernels of another kind than its forward: those that mask each
// pair by itself and add fp32 gradients up by atomics reach little of the peak, and less where heads
// are too wide for their registers.
//
// Memory: which tensors stay, by the lists of shared/held/stack_sizes.h.
//
// A compute op lasts as long as its kernels, or as its launches · host: the host runs ahead.
//
// Products in a narrow format are two launches more each, which cast the operands. Those with a
// side below kNarrowSide (low-rank pairs, routers) stay in the compute format.
//
// Does not model: the host waiting for the device but for the routing of experts, kernels of
// different streams side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/units.h"

namespace polyphony {

// Forward, over the scores in the compute format: written by the product (1), masked softmax (2),
// dropout (2, its mask 1/2), read by the second product (1). The backward moves twice as much. Own
// count of Megatron-LM's unfused path with its fused softmax.
inline constexpr double kScorePasses = 6.5;

// Half a tile of the kernels' own.
inline constexpr std::int64_t kNarrowSide = 64;

// Widest head of narrow_attention_backward.
inline constexpr std::int64_t kNarrowHead = 64;

// Whose lists: this project's executor; Megatron-LM's own unfused layers; Megatron Core on
// Transformer Engine; plain PyTorch modules under FSDP2 (torchtitan, llm-foundry, AutoModel).
enum class Keeping : std::uint8_t { polyphony, megatron, transformer_engine, fsdp };
const char* name(Keeping keeping);

struct StackMemory {
  Keeping keeping = Keeping::polyphony;
  bool dropout = false;        // masks of a byte an element
  bool fused_loss = false;     // the logits become their gradients in place, in the compute format
  bool compiled = false;       // torch.compile: what is made point by point is made again
  bool by_operator = false;    // selective recomputation: every other product is kept (torchtitan)
  bool head_exchange = false;  // context parallelism by all-to-all of heads, not by a ring
  bool fused_gradient_sums = false;  // gradients are summed inside the products that make them
  Bytes gradient{};                  // of an accumulated element; 0: four, or as wide as fp64
  Bytes workspaces{};                // of the product libraries, inside the allocator
  bool operator==(const StackMemory&) const = default;
};

struct SoftwareStack {
  std::string name = "polyphony";
  double traffic = 1;   // bytes of a memory-bound kernel
  double launches = 1;  // launches of a memory-bound kernel
  Seconds host{};       // per launch
  // A layer of experts, forward, whose tokens go once to each place: the host waits to be told how
  // many arrive before it can launch their products, and the device runs dry behind it (DeepEP's
  // README, "the CPU will wait"); not where the device counts (counts_on_device).
  Seconds routing{};
  // Biases and dropout (where memory.dropout) are kernels of their own, in transformer blocks
  // alone, beside those that the executor has (shared/cost/unfused.h).
  bool unfused = false;
  bool eager_attention = false;
  // Kernels of before the GPU's own generation of flash kernels, at an efficiency of their own
  // (shared/hardware/hardware.h); eager products too.
  bool early_attention = false;
  // Of the peak, what attention's backward reaches with heads of up to kNarrowHead, and with wider
  // ones, whatever the forward does; 0: as the profile says.
  double narrow_attention_backward = 0, wide_attention_backward = 0;
  // Key heads, with their queries', in one launch of attention forward; 0: all. Few of them leave
  // processors idle at its end (shared/cost/attention_tail.h).
  int key_heads_a_launch = 0;
  // Images of one work are rows of one sequence, whose pairs are all computed and then masked.
  bool masked_images = false;
  // Experts: a token goes to a node, and to a rank, once, however many of its experts are there
  // (DeepEP, HybridEP); else once to each expert.
  bool one_copy = false;
  // Experts' products in one kernel with the activation and the casts between them, as fast as one
  // product alone (CuTeDSL grouped products, MXFP8 on Blackwell).
  bool fused_experts = false;
  // Between pipeline stages each tensor-parallel rank sends its part alone, and the receivers
  // gather the rows (arXiv 2104.04473, §4.1); with sequence parallelism parts are all that there
  // is.
  bool scattered_messages = false;
  // A pipeline stage computes on only when the rows that it sent on have arrived; gradients go beside.
  bool blocking_messages = false;
  double gradient_bytes = 0;  // an element as it is reduced; 0: as the executor does
  // Of the backward that makes gradients last, what hides their reduction; of the next forward,
  // what hides the gather of parameters.
  double overlap = 0;
  // Of a column-parallel layer's products in the backward, what hides its collectives (InnerCollective::may_hide).
  double tensor_overlap = 0;
  // Of the other products, what hides the tensor-parallel collectives beside them, cut in pieces.
  double pipelined = 0;
  // Of the device's rates, what a collective takes from the compute that hides it, while it runs:
  // inside a node, between nodes; in sharded modules, from every op. Calculon's system tables: 0.15
  // over NVLink, 0.02 over InfiniBand. 0: not counted.
  double taken_inside = 0, taken_between = 0;
  std::optional<NumberFormat> matrix;  // of the blocks' weight products; operands are cast first
  StackMemory memory;
  bool operator==(const SoftwareStack&) const = default;
};

// Shipped stacks, each fitted as scripts/fit_profiles says.
const std::vector<SoftwareStack>& shipped_stacks();
const SoftwareStack* find_stack(const std::string& name);  // null: no such name
std::vector<std::string> stack_names();

}  // namespace polyphony
