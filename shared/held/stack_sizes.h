// What another framework's chunk holds on one rank, where shared/chunk/sizes.h counts this project's
// executor: tensors that stay for the backward, and the most that an op holds besides.
//   T tokens, q own rows (T/t under sequence parallelism, else T), H hidden, A·D/t attention width
//   a rank, K·D/t keys (as many values), F/t feed-forward width (of T·k routed rows with experts),
//   g 2 gated or 1, V/t vocabulary, S² = Σ over sequences of tokens², e bytes of the compute
//   format, m of an operand of weight products (fp8: 1, nvfp4: 9/16)
//
// Of a block                megatron      transformer_engine     fsdp
//   inputs of both norms    2·e·q·H       2·e·q·H                2·e·q·H
//   outputs of both         2·e·q·H       2·m·q·H                2·e·T·H, compiled 0
//   q, k, v                 e·T·(A + 2K)·D/t, everywhere
//   attention's output      e·T·A·D/t     the same; fp8 once     e·T·A·D/t
//                                         more with m, heads exchanged
//                                         once more with e
//   its scores              softmax and dropped softmax 2·e·S²·A/t, mask S²·A/t; flash kernels
//                           4·T·A/t: log-sum-exp
//   first matrix's output   g·e·T·F/t, everywhere
//   activation's output     e·T·F/t       m·T·F/t                (1 + [gated])·e·T·F/t,
//                                                                compiled 0
//   masks of dropout        2·q·H         0                      0
//   statistics of norms     4·q, LayerNorm 8·q, each
//   RMS norms, eager fsdp   4·q·H more each: their input in fp32, what they divided in e
// Latent attention: q and k T·A·(D + R)/t, v and the output T·A·Dv/t; latents before and after their
// norms e·q·(2·Lq + 2·Lk + R), statistics 4·q each. A gate: 2·e·T·A·D/t. Other kinds of attention: as ours.
// megatron without sequence parallelism, e = 2, F = 4H, K = A: s·b·h·(10 + 24/t + 5·a·s/(h·t)), as
// in the paper below. S² under another mask than the causal one: of sequences of equal length. Experts: rows sent to them m·T·k·H, router logits 4·q·E.
// Recomputed: full, e·q·H. Selective: scores or log-sum-exp go, q, k, v and the output stay;
// `by_operator`: e·q·H, outputs of the first, third, … of the products q, k, v, out, gate, up,
// down, attention's own and, with t > 1, both scattered sums; compiled, not what nobody reads.
// Head: input and output of its norm 2·e·q·H (fsdp: output e·T·H), logits: fused e·T·V/t,
// else 4·T·V/t. Embedding: mask of dropout q·H. Other layers: as ours.
//
// Besides, forward: partial sums before they are scattered; logits in both formats (fsdp: cast to
// fp32 and their logarithms; cut over t also the shifted and their exponentials). Backward: of
// the feed-forward part's three steps and of attention, what the largest makes over what the steps
// before it have freed (own count, stack_blocks.cpp); logits' gradients; the embedding's whole
// gradient. What is recomputed is there again, a block at a time.
// Does not model: fragmentation, other ranks' larger shares of tokens at experts, offloading, CUDA
// graphs' pools, communicators' buffers (outside the allocator).
//
// Sources: Korthikanti et al., arXiv 2205.05198 §4 (megatron); NVIDIA/TransformerEngine,
// pytorch/module/{layernorm_linear,linear}.py, save_for_backward, attention/dot_product_attention/
// context_parallel.py; NVIDIA/Megatron-LM, core/fusions/fused_bias_swiglu.py,
// core/tensor_parallel/{layers,cross_entropy}.py; pytorch/torchtitan of 2024-12, train.py,
// parallelisms/parallelize_llama.py, models/{norms,llama/model}.py; pytorch/pytorch,
// torch/distributed/{fsdp/_fully_shard/_fsdp_{param_group,collectives},pipelining/stage,
// tensor/parallel/loss}.py.
#pragma once

#include "shared/chunk/held_sizes.h"
#include "shared/chunk/sizes.h"
#include "shared/hardware/software.h"

namespace polyphony {

// Of one layer: what stays, and the most that there is at once in its forward and its backward,
// what stays included.
struct LayerHeld {
  std::int64_t kept = 0, forward = 0, backward = 0;
};
LayerHeld block_held(const SoftwareStack& stack, const Module& module, const WorkSize& size,
                     const RankContext& context, Recompute recompute, int block = 0);

// Of a chunk: its tape, inputs included (input_in_tape()), and what an op holds besides: a backward
// at its loss, where no gradient of a parameter is there yet, and behind it.
struct ChunkHeld {
  Bytes tape{}, forward{}, loss{}, backward{};
};
ChunkHeld chunk_held(const SoftwareStack& stack, const Module& module, LayerRange layers,
                     const WorkSize& size, const RankContext& context);

// Parameters, gradients and optimizer state (shared/chunk/held_sizes.h has ours).
//   Megatron: gradients of StackMemory::gradient bytes; moments and masters in fp32.
//   fsdp: the parameters are the fp32 masters; gradients and moments in fp32. 16 bytes in all.
//   Divided gradients: masters are divided too, and what was gathered of them stays. In a pipeline it
//   does so under fully sharded parameters, too, and gradients stay whole in fp32 until the last work
//   (torch.distributed.pipelining; torchtitan's default).
HeldBytes stack_held_bytes(const SoftwareStack& stack, const HeldElements& elements, Shard shard,
                           int shards, int shard_index, bool pipelined, NumberFormat precision);

// Layers by elements on a rank, largest first, that are gathered and summed one by one: with fsdp
// not a module's first and last (`size` layers in all), which are one group with its norm, gathered
// throughout a step.
std::vector<std::int64_t> unit_elements(const SoftwareStack& stack,
                                        const std::vector<Parameter>& parameters,
                                        const ShardIndex& place, int size);
// Of such layers, fully sharded: gathered in the compute format, the largest and the one fetched
// ahead. And whole gradients: the largest layer's in the compute format and in fp32 on its way to be
// summed, and the sum before it; in a pipeline, before it is added to what is kept.
Bytes stack_gathered_bytes(const SoftwareStack& stack, const std::vector<std::int64_t>& units,
                           bool pipelined, NumberFormat precision);
Bytes stack_whole_gradient_bytes(const SoftwareStack& stack, const std::vector<std::int64_t>& units,
                                 bool pipelined, NumberFormat precision);

// Transformer Engine (2.3 and later) hands autograd one never-written gradient per shape of matrix,
// kept for ever (module/base.py, get_dummy_wgrad): `shapes` of one rank's trained matrices; of
// tables only one that the head here multiplies with.
using MatrixShapes = std::vector<std::pair<std::int64_t, std::int64_t>>;
void add_matrix_shapes(const std::vector<Parameter>& parameters, const ShardIndex& place,
                       bool with_head, MatrixShapes& shapes);
// All that a rank keeps beside parameters, gradients and state: those, the rows of the head's input
// gathered over the tensor-parallel ranks (Megatron's global memory buffer), workspaces; of fully
// sharded modules' ends (unit_elements()) what stays gathered, and the buffer that it was gathered
// into: another stream's, so that nothing else fits there.
struct Standing {
  MatrixShapes shapes;
  std::int64_t rows = 0;  // elements
  std::int64_t ends = 0;  // elements
};
// Elements gathered of ends; a pipeline's values have them already (stack_held_bytes()).
std::int64_t end_copies(const SoftwareStack& stack, std::int64_t elements, bool pipelined);
Bytes standing_bytes(const SoftwareStack& stack, Standing standing, NumberFormat precision);

}  // namespace polyphony
