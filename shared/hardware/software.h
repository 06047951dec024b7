// What a training framework adds to the cost of the kernels themselves: what it fuses, how it
// computes attention, in which format it reduces gradients, how much time its host code takes. It
// is part of a hardware profile, which is valid for one software stack. The defaults are those of
// this project's executor, whose kernels shared/chunk/expand.h counts.
//
//   Op time             a compute op lasts as long as its kernels, or its launches · host if that
//                       is longer: the host runs ahead of the device
//   Eager attention     scores of whole squares are written and read, kScorePasses times in total
//   Attention backward  may have other kernels than the forward pass. Those that mask each pair
//                       individually and accumulate fp32 gradients with atomics reach little of the
//                       peak, and less if heads are too wide for their registers
//   Narrow formats      a GEMM in a narrow format needs two more launches, which cast the operands.
//                       GEMMs with a side below kNarrowSide (LoRA pairs, routers) stay in the
//                       compute format
//   Memory              which tensors stay resident: the lists of shared/held/stack_sizes.h
//
// Does not model: the host waiting for the device, except for the routing of experts; kernels that
// run in parallel on different streams.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/hardware/cluster.h"
#include "shared/units.h"

namespace polyphony {

// Passes over the scores in the compute format, forward: written by the first GEMM (1), masked
// softmax (2), dropout (2, its mask 1/2), read by the second GEMM (1). Backward: twice as many. Own
// count of Megatron-LM's unfused path with its fused softmax.
inline constexpr double kScorePasses = 6.5;

// Shortest GEMM side that is computed in a narrow format: half a tile of the kernels.
inline constexpr std::int64_t kNarrowSide = 64;

// Widest head for which narrow_attention_backward holds.
inline constexpr std::int64_t kNarrowHead = 64;

// Activation policy: whose list of saved tensors the stack follows.
enum class Keeping : std::uint8_t {
  polyphony,           // this project's executor
  megatron,            // Megatron-LM's own unfused layers
  transformer_engine,  // Megatron Core on Transformer Engine
  fsdp                 // plain PyTorch modules under FSDP2 (torchtitan, llm-foundry, AutoModel)
};
// The policies in words.
constexpr auto names(Keeping) {
  return names_of<Keeping>("this project's executor", "Megatron-LM's unfused layers",
                           "Megatron Core on Transformer Engine", "PyTorch FSDP2");
}

struct StackMemory {
  Keeping keeping = Keeping::polyphony;
  bool dropout = false;        // saves dropout masks, one byte per element
  bool fused_loss = false;     // gradients overwrite the logits in place, in the compute format
  bool compiled = false;       // torch.compile: pointwise results are recomputed, not saved
  bool by_operator = false;    // selective recomputation saves every second GEMM (torchtitan)
  bool head_exchange = false;  // context parallelism by all-to-all of heads, not by a ring
  bool fused_gradient_sums = false;  // weight-gradient GEMMs accumulate into the gradients
  Bytes gradient{};                  // per accumulated element; 0: four bytes, or eight for fp64
  Bytes workspaces{};                // of the GEMM libraries, inside the allocator
  bool operator==(const StackMemory&) const = default;
};

struct SoftwareStack {
  std::string name = "polyphony";
  double traffic = 1;   // factor on the bytes of memory-bound kernels
  double launches = 1;  // factor on the launches of memory-bound kernels
  Seconds host{};       // host time per launch
  // Wait per forward pass of an expert layer whose dispatch sends one copy of a token (one_copy):
  // the host must learn how many tokens arrive before it can launch their GEMMs, and the device
  // runs out of queued work (DeepEP's README, "the CPU will wait"). Zero if the counts stay on the
  // device (counts_on_device).
  Seconds routing{};
  // Biases and dropout (if memory.dropout) are separate kernels, in transformer blocks only, in
  // addition to the executor's kernels (shared/cost/unfused.h).
  bool unfused = false;
  bool eager_attention = false;
  // Uses flash kernels of the generation before the GPU's own, at early_attention_efficiency
  // (shared/hardware/hardware.h). Eager attention has that efficiency, too.
  bool early_attention = false;
  // Share of the peak that the backward pass of attention reaches with heads up to kNarrowHead
  // wide, and with wider ones, independent of the forward pass; 0: as the profile states.
  double narrow_attention_backward = 0, wide_attention_backward = 0;
  // Key heads, with the queries that use them, per launch of attention forward; 0: all. With few,
  // processors are idle at the end of a launch (shared/cost/attention_tail.h).
  int key_heads_a_launch = 0;
  // The images of one microbatch form one sequence: all pairs are computed, and those of different
  // images are masked.
  bool masked_images = false;
  // Expert dispatch sends a token once per node and once per rank, however many of its experts are
  // there (DeepEP, HybridEP); otherwise once per expert.
  bool one_copy = false;
  // Both GEMMs of the experts are one kernel, with the activation and the casts between them, as
  // fast as a single GEMM (CuTeDSL grouped GEMMs, MXFP8 on Blackwell).
  bool fused_experts = false;
  // Between pipeline stages each tensor-parallel rank sends only its part of the rows, and the
  // receivers gather them (arXiv 2104.04473, §4.1). Under sequence parallelism ranks have only
  // their parts anyway.
  bool scattered_messages = false;
  // A pipeline stage continues to compute only when the rows that it sent have arrived; messages of
  // gradients are overlapped.
  bool blocking_messages = false;
  double gradient_bytes = 0;  // bytes per element in a gradient reduction; 0: as the executor
  // Fraction of a chunk's last backward op during which its gradients can be reduced, and of its
  // first forward op during which its parameters can be gathered.
  double overlap = 0;
  // Share of a column-parallel layer's backward GEMMs that hides its collectives
  // (InnerCollective::may_hide).
  double tensor_overlap = 0;
  // Fraction of the other GEMMs that hides tensor-parallel collectives where rows are split into
  // chunks (not pipeline parallelism).
  double pipelined = 0;
  // Share of the device's rates that a collective takes from the compute that hides it, while it
  // runs: inside a node, and between nodes; for sharded modules, from every op. Calculon's system
  // tables: 0.15 over NVLink, 0.02 over InfiniBand. 0: not modeled.
  double taken_inside = 0, taken_between = 0;
  // Format of the blocks' GEMMs with weights; operands are cast first. Absent: the compute format.
  std::optional<NumberFormat> matrix;
  StackMemory memory;
  bool operator==(const SoftwareStack&) const = default;
};

// Returns the shipped stacks; scripts/fit_profiles states how each was fitted.
const std::vector<SoftwareStack>& shipped_stacks();
const SoftwareStack* find_stack(const std::string& name);  // null: no such name
std::vector<std::string> stack_names();

}  // namespace polyphony
