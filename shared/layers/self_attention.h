// Self-attention: over whole sequences, inside windows of an image, or over the rows just before
// each row (AttentionKind full and window). A query heads and K key/value heads of width D (if
// t > K, K counts as t), T rows; G = T, or under context parallelism the group's rows; P pairs that
// attend: 4·P·A·D flops forward, 8·P·A·D backward.
//   parameters          qkv [(A + 2K)·D, H] by key/value head; out [H, A·D]; q and k head norms [D]
//                       each; attention sinks [A]; with an attention gate each query head of qkv is
//                       followed by its gate's D rows
//   saved activations   e·(q·H + T·2·A·D/t + G·2·K·D/t) + w·T·A/t: its input (if the module trains
//                       or adapts), q, k, v, the attention output (input of the output matrix) and
//                       the log-sum-exp; selective recomputation omits the last two.
//                       LoRA adds 2·e·T·r.
//                       Head norms add T·(e·(A·D + 2·K·D)/t + w·(A + K)/t): q, k, v before the
//                       norms, and the scales.
//                       A gate adds e·T·A·D/t, and the gated output in addition to the plain output
//                       if the output matrix needs it.
//                       Sinks add w·A/t. They move no bytes, as they join the log-sum-exp.
//
// Context parallelism over n ranks (ContextAttention):
//   all_gather  keys and values are gathered sample by sample, their gradients reduce-scattered.
//   ulysses     heads are exchanged: all of q, k and v before attention and the output after it.
//               G/n rows replace T and G in the saved activations, and e·T·A·D/t is added for the
//               output matrix if it needs its input.
//   ring        keys and values circulate, and in the backward pass again with their gradients in w
//               bytes. Saved are the own rows, G·2·K·D/t with G = T. During the backward pass
//               e·G/n·2·K·D/t of the current block and of the next one are in memory, unless they
//               are the rank's own (blocks count as if all were equal).
//   By h heads  (ModuleLayout::cp_heads) all_gather in groups of h heads, each overlapped with the
//               attention of the group before. The backward pass gathers them again, and overlaps
//               the reduce-scatter of the previous group's gradients as well. Saved are own rows,
//               T·2·K·D/t; during the backward pass e·G·4·h·D of the current and the next group are
//               in memory.
// Source: own derivation; reads and writes: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// Returns in how many groups of heads the keys of a context group are gathered; 1 if all heads are
// gathered at once.
int key_groups(const Module& module, const ChunkContext& context);
// Returns in how many consecutive parts the keys arrive: attention to one part is overlapped with
// the transfer of the next.
int key_parts(const Module& module, const ChunkContext& context);

class SelfAttention : public LayerKernels {
 public:
  explicit SelfAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  // Kernels from q, k and v to the attention output: what selective recomputation runs again.
  void recompute_attention();
  void backward_input(bool again);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  // The part of tape() that selective recomputation omits.
  static std::int64_t recomputed_bytes(const LayerBytes& bytes);
  // Keys and values that the backward pass receives again, as many as are in memory at once.
  static std::int64_t received_again_bytes(const LayerBytes& bytes);
  static std::string refused(const Module& module, const ModuleLayout& layout);

 private:
  std::int64_t query_width() const {
    return std::int64_t{module_.heads} * module_.head_dim / context_.tp;
  }
  std::int64_t key_width() const {  // if there are more ranks than key/value heads, one head each
    return std::int64_t{std::max(1, module_.kv_heads / context_.tp)} * module_.head_dim;
  }
  // Whether it has rotary embeddings. A language module without rope_theta has none (learned
  // positions, ALiBi).
  bool rotates() const {
    return module_.kind == ModuleKind::language ? module_.rope_theta > 0 : module_.rotary;
  }
  bool biased() const { return module_.attention_bias || module_.kind == ModuleKind::diffusion; }
  Linear qkv() const {
    return {size_.tokens, hidden(),
            (module_.attention_gate ? 2 : 1) * query_width() + 2 * key_width(),
            biased() || module_.qkv_bias, low_rank()};
  }
  Linear out() const { return {size_.tokens, query_width(), hidden(), biased(), low_rank()}; }
  bool exchanges() const { return context() && context_.cp_attention == ContextAttention::ulysses; }
  bool rings() const { return context() && context_.cp_attention == ContextAttention::ring; }
  // Rows that this rank computes attention for, counted with all of its heads. If heads are
  // exchanged, its share of the group's rows.
  std::int64_t query_rows() const {
    return exchanges() ? (size_.gathered + context_.cp - 1) / context_.cp : size_.tokens;
  }
  std::int64_t key_rows() const {
    return exchanges() ? query_rows() : context() ? size_.gathered : size_.tokens;
  }
  void rotate();
  void split_heads();
  void join_heads();
  void attention(double flops_per_pair_and_width, int q_like, int k_like);
  int groups() const { return context() ? key_groups(module_, context_) : 1; }
  // Whether keys arrive in parts, while attention runs.
  bool keys_arrive_in_parts() const { return rings() || groups() > 1; }
  void gather_keys();
  void scatter_key_gradients();
  void group_collective(CollectiveKind kind, bool beside_attention);
  void gather_groups();
  void gather_and_scatter_groups();
  void join_groups(std::int64_t width);
  void ring_pass(std::int64_t each);
  // Exchanges rows of `width` features for the group's rows with a share of the heads, or back.
  void exchange_heads(std::int64_t width);
  void merge_blocks(std::int64_t elements, std::int64_t element);
  // RMSNorm of q and k per head; v is copied.
  void head_norm();
  void head_norm_backward();
};

}  // namespace polyphony
