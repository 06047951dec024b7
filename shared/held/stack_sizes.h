// Memory of a chunk on one rank as another framework (megatron, transformer_engine, fsdp) allocates
// it: tensors saved for the backward, and the most that an op holds in addition.
// shared/chunk/sizes.h counts the same for this project's executor.
//
//   T tokens, q own rows (T/t under sequence parallelism, else T), t tensor-parallel ranks, H
//   hidden, A·D/t attention width per rank, K·D/t keys (as many values), F/t feed-forward width (of
//   T·k routed rows with experts), g 2 if gated, else 1, V/t vocabulary, S² = Σ over sequences of
//   tokens², e bytes of the compute format, m bytes of an operand of weight GEMMs (fp8: 1, nvfp4:
//   9/16)
//
// Of a block                megatron      transformer_engine     fsdp
//   inputs of both norms    2·e·q·H       2·e·q·H                2·e·q·H
//   outputs of both         2·e·q·H       2·m·q·H                2·e·T·H, compiled 0
//   q, k, v                 e·T·(A + 2K)·D/t in all three
//   attention's output      e·T·A·D/t     the same; with fp8     e·T·A·D/t
//                                         m·T·A·D/t more; heads
//                                         exchanged: e·T·A·D/t more
//   its scores              softmax and dropped softmax 2·e·S²·A/t, mask S²·A/t; flash kernels
//                           4·T·A/t: log-sum-exp
//   first matrix's output   g·e·T·F/t in all three
//   activation's output     e·T·F/t       m·T·F/t                (1 + [gated])·e·T·F/t,
//                                                                compiled 0
//   masks of dropout        2·q·H         0                      0
//   statistics of norms     4·q, LayerNorm 8·q, each
//   RMS norms, eager fsdp   4·q·H more each: their input in fp32, the divided one in e
//
// Latent attention: q and k T·A·(D + R)/t, v and the output T·A·Dv/t; latents before and after
// their norms e·q·(2·Lq + 2·Lk + R), statistics 4·q each. A gate: 2·e·T·A·D/t. Other kinds of
// attention are counted as in this project's executor.
//
// Check: megatron without sequence parallelism, e = 2, F = 4H, K = A: s·b·h·(10 + 24/t +
// 5·a·s/(h·t)), as in the paper below. S² under a mask other than the causal one assumes sequences
// of equal length. Experts: rows sent to them m·T·k·H, router logits 4·q·E.
//
// Recomputation. Full: e·q·H. Selective: scores or log-sum-exp are dropped; q, k, v and the output
// stay. `by_operator`: e·q·H and the outputs of the first, third, … of the GEMMs q, k, v, out,
// gate, up, down, of attention, and with t > 1 of both reduce-scatters; compiled: without those
// that no later op reads.
//
// Head: input and output of its norm 2·e·q·H (fsdp: output e·T·H), logits: fused e·T·V/t, else
// 4·T·V/t. Embedding: mask of dropout q·H. Other layers are counted as in this project's executor.
//
// In addition, during a forward: partial sums before they are reduced; logits in both formats
// (fsdp: cast to fp32 and their logarithms; divided over t also the shifted ones and their
// exponentials). During a backward: the largest of the three steps of the feed-forward part and of
// attention, less what the steps before have freed (own count, stack_blocks.cpp); gradients of the
// logits; the whole gradient of the embedding. Recomputed activations exist again, one block at a
// time.
//
// Does not model: fragmentation, larger shares of tokens at other ranks' experts, offloading, pools
// of CUDA graphs, buffers of communicators (outside the allocator).
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

// Bytes of one layer: what is saved for the backward, and the peaks of its forward and its
// backward, saved bytes included.
struct LayerHeld {
  std::int64_t kept = 0, forward = 0, backward = 0;
};
LayerHeld block_held(const SoftwareStack& stack, const Module& module, const WorkSize& size,
                     const RankContext& context, Recompute recompute, int block = 0);

// Bytes of a chunk for one microbatch.
struct ChunkHeld {
  Bytes tape{};  // saved activations; the chunk's inputs are among them (input_in_tape())
  // The most that an op of the chunk holds in addition to its saved activations:
  Bytes forward{};   // a forward
  Bytes loss{};      // a backward, in the language head: no gradient of a parameter exists yet
  Bytes backward{};  // a backward, in any other layer
};
ChunkHeld chunk_held(const SoftwareStack& stack, const Module& module, LayerRange layers,
                     const WorkSize& size, const RankContext& context);

// Returns the bytes of parameters, gradients and optimizer state (shared/chunk/held_sizes.h counts
// those of this project's executor).
//   megatron: gradients of StackMemory::gradient bytes; moments and masters in fp32.
//   fsdp: the parameters are the fp32 masters; gradients and moments in fp32; 16 bytes in total.
//   Sharded gradients: masters are sharded too, and the gathered parameters stay. In a pipeline
//   they also stay under fully sharded parameters, and gradients stay unsharded in fp32 until the
//   last microbatch (torch.distributed.pipelining; torchtitan's default).
HeldBytes stack_held_bytes(const SoftwareStack& stack, const HeldElements& elements, Shard shard,
                           int shards, int shard_index, bool pipelined, NumberFormat precision);

// Returns the elements on a rank of each layer that is gathered and reduced by itself, largest
// first. With fsdp, these exclude a module's first and last layer (`size` layers in total), which
// form one group with its norm and stay gathered throughout a step.
std::vector<std::int64_t> unit_elements(const SoftwareStack& stack,
                                        const std::vector<Parameter>& parameters,
                                        const ShardIndex& place, int size);
// Return the bytes of such layers under fully sharded parameters. Gathered: in the compute format,
// the largest layer and the one fetched ahead. Whole gradients: the largest layer's in the compute
// format, and in fp32 on its way to be reduced, and the reduction before it; in a pipeline, before
// it is added to the gradients kept.
Bytes stack_gathered_bytes(const SoftwareStack& stack, const std::vector<std::int64_t>& units,
                           bool pipelined, NumberFormat precision);
Bytes stack_whole_gradient_bytes(const SoftwareStack& stack, const std::vector<std::int64_t>& units,
                                 bool pipelined, NumberFormat precision);

// Adds the shapes of one rank's trained matrices. Transformer Engine (2.3 and later) gives autograd
// one never-written gradient per shape of matrix and keeps it for the whole run (module/base.py,
// get_dummy_wgrad). Of embedding tables, only one that the head on this rank multiplies with
// counts.
using MatrixShapes = std::vector<std::pair<std::int64_t, std::int64_t>>;
void add_matrix_shapes(const std::vector<Parameter>& parameters, const ShardIndex& place,
                       bool with_head, MatrixShapes& shapes);
// What a rank keeps resident in addition to parameters, gradients and state: the gradients above;
// the rows of the head's input gathered over the tensor-parallel ranks (Megatron's global memory
// buffer); workspaces; and for the ends of fully sharded modules (unit_elements()) the gathered
// values and the buffer into which they were gathered, which belongs to another stream, so that
// nothing else can use its memory.
struct Standing {
  MatrixShapes shapes;
  std::int64_t rows = 0;  // elements
  std::int64_t ends = 0;  // elements
};
// Returns the elements of the copies of such ends: the gathered values and the buffer into which
// they were gathered. In a pipeline the buffer alone, because stack_held_bytes() counts the values
// there.
std::int64_t end_copies(const SoftwareStack& stack, std::int64_t elements, bool pipelined);
Bytes standing_bytes(const SoftwareStack& stack, Standing standing, NumberFormat precision);

}  // namespace polyphony
