// Attention of queries to keys and values made of the same rows: over whole sequences, inside
// windows of an image, or to the rows just before (AttentionKind full and window). A query heads and
// K key/value heads of width D (t > K: K counts as t), T rows, G = T, or under context parallelism
// the group's rows; P pairs that attend: 4·P·A·D flops forward, 8·P·A·D backward.
//   parameters  qkv [(A + 2K)·D, H] by key/value head; out [H, A·D]; norms of heads [D] each; sinks
//               [A]; with a gate each query head of qkv is followed by its gate's D rows
//   tape        e·(q·H + T·2·A·D/t + G·2·K·D/t) + w·T·A/t: its input (where the module trains or
//               adapts), q, k, v, the attention's output (input of the output matrix), log-sum-exp;
//               selective recomputation without the last two. LoRA 2·e·T·r more. Norms of heads
//               T·(e·(A·D + 2·K·D)/t + w·(A + K)/t): q, k, v before them, scales. A gate e·T·A·D/t,
//               and the gated output beside the output where the output matrix wants it
//   Context parallelism, n ranks (ContextAttention): keys and values are gathered by sample, their gradients
//   scattered; heads are exchanged, all of q, k, v there and the output back, G/n rows taking the place of T
//   and G in the tape, and e·T·A·D/t more for the output matrix where it wants its input; or keys and
//   values go round, G·2·K·D/t as own rows again, back with their gradients in w bytes; then e·G/n·2·K·D/t
//   of the block at hand and of the next are there, where others' (blocks as if all were equal). By h
//   heads (ModuleLayout::cp_heads) they are gathered beside the attention of the h heads before, in the
//   backward again; there, beside it too, follow the gradients of those before. The tape has own rows,
//   T·2·K·D/t; while the backward runs there are e·G·4·h·D, of the heads at hand and the next.
//   Sinks, w·A/t of the tape, move nothing: they join the log-sum-exp.
// Source: own derivation; what a pass reads and writes, own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// How many groups of heads the keys of a context group are gathered in; 1: they are not.
int key_groups(const Module& module, const ChunkContext& context);
// How many parts one after another the attention's keys come in: one is attended to while the next
// is on its way.
int key_parts(const Module& module, const ChunkContext& context);

class SelfAttention : public LayerKernels {
 public:
  explicit SelfAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  // From q, k and v to the attention output: what selective recomputation runs again.
  void again();
  void backward_input(bool again);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  // Of it, what selective recomputation does without.
  static std::int64_t again_bytes(const LayerBytes& bytes);
  // Keys and values that are brought again in the backward, as many as are there at once.
  static std::int64_t brought_bytes(const LayerBytes& bytes);
  static std::string refused(const Module& module, const ModuleLayout& layout);

 private:
  std::int64_t query_width() const {
    return std::int64_t{module_.heads} * module_.head_dim / context_.tp;
  }
  std::int64_t key_width() const {  // more ranks than key/value heads: one each
    return std::int64_t{std::max(1, module_.kv_heads / context_.tp)} * module_.head_dim;
  }
  // A language module without a base of frequencies has no rotation (learned positions, ALiBi).
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
  // Rows that this rank attends for, with all of its heads: by heads, its share of the group's.
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
  bool comes_by() const { return rings() || groups() > 1; }  // while it attends
  void bring_keys();
  void return_keys();
  void move_group(CollectiveKind kind, bool beside_attention);
  void bring_groups();
  void bring_and_return_groups();
  void join_groups(std::int64_t width);
  void pass_round(std::int64_t each);
  // Rows of `width`, for those of the group with a share of the heads; or back.
  void exchange_heads(std::int64_t width);
  void merge_blocks(std::int64_t elements, std::int64_t element);
  // RMSNorm of q and k, their heads side by side; v is copied.
  void head_norm();
  void head_norm_backward();
};

}  // namespace polyphony
