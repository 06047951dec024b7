// The kernels and inner collectives of one layer on one rank, phase by phase: what
// shared/layers/expand.h puts together.
//   Names of sizes as in shared/model/model.h, after the tensor-parallel cut; element counts become
//   bytes in the compute format. Where ranks have unequal shares (of rows under sequence
//   parallelism, of a vocabulary), the largest; labels are taken to be spread evenly over the rows.
#pragma once

#include <algorithm>

#include "shared/layers/expand.h"
#include "shared/layers/row_shares.h"
#include "shared/layers/rows.h"

namespace polyphony {

// One weight matrix on this rank: y[rows, out] = x[rows, in] Wᵀ. Counts are after the
// tensor-parallel cut.
struct Linear {
  std::int64_t rows, in, out;
  bool bias = false;
  std::int64_t low_rank = 0;  // r of the trained pair beside it (shared/layers/lora.h); 0: none
};

// Writes the kernels and collectives of one layer. What a pass over memory reads and writes follows
// a plain ATen implementation: norms are one fused kernel (at::layer_norm, at::rms_norm),
// everything else one kernel per arithmetic operation, and bias-free matrix products accumulate
// weight gradients in place (addmm_). Source of the pass counts: own count, stated beside each.
class LayerKernels {
 public:
  LayerKernels(const Module& module, LayerKind layer, const WorkSize& size,
               const ChunkContext& context, bool input_grad, Expansion& out)
      : module_(module),
        layer_(layer),
        size_(size),
        context_(context),
        input_grad_(input_grad),
        out_(out) {}

  void forward();
  void backward_input(Recompute recompute);
  void backward_weight();
  // Rows that edges bring a chunk beside its main input, before its first layer; after it in the
  // backward, their gradients. `reads_conditioning`: the chunk has blocks that read across.
  void edges_in(bool reads_conditioning);
  void edges_out(bool reads_conditioning);

 private:
  // Sizes on this rank.
  std::int64_t hidden() const { return module_.hidden; }
  std::int64_t query_width() const {
    return std::int64_t{module_.heads} * module_.head_dim / context_.tp;
  }
  std::int64_t key_width() const {  // more ranks than key/value heads: one each
    return std::int64_t{std::max(1, module_.kv_heads / context_.tp)} * module_.head_dim;
  }
  std::int64_t ffn() const { return module_.ffn / context_.tp; }
  std::int64_t element() const { return size_of(context_.precision).value; }
  // Master gradients of 16-bit and smaller formats are fp32 (shared/scenario/scenario.h); the loss
  // is computed in fp32 at least.
  std::int64_t wide_element() const { return std::max<std::int64_t>(4, element()); }
  bool sequence() const { return context_.sp && context_.tp > 1; }
  // Of `rows` of all ranks, those a rank has between blocks.
  std::int64_t own(std::int64_t rows) const {
    return sequence() ? RowShares{rows, context_.tp}.share() : rows;
  }
  bool lora() const { return module_.trainable == Trainable::lora; }
  std::int64_t low_rank() const { return lora() ? module_.lora_rank : 0; }
  // A language module without a base of frequencies has no rotation (learned positions, ALiBi).
  bool rotates() const {
    return module_.kind == ModuleKind::language ? module_.rope_theta > 0 : module_.rotary;
  }
  Linear qkv() const {
    return {size_.tokens, hidden(), query_width() + 2 * key_width(),
            module_.attention_bias || module_.qkv_bias, low_rank()};
  }
  Linear attention_out() const {
    return {size_.tokens, latent() ? latent_heads() * value_width(module_) : query_width(),
            hidden(), module_.attention_bias, low_rank()};
  }
  Linear mlp_in() const {
    return {size_.tokens, hidden(), (module_.gated ? 2 : 1) * ffn(), module_.mlp_bias, low_rank()};
  }
  Linear mlp_out() const { return {size_.tokens, ffn(), hidden(), module_.mlp_bias, low_rank()}; }
  // Experts: shared/layers/moe_kernels.cpp.
  bool sparse() const { return module_.experts > 0; }
  bool cut_experts() const { return context_.expert_tp > 1; }
  std::int64_t routed() const { return cut_experts() ? size_.tokens : own(size_.tokens); }
  std::int64_t slots() const { return routed() * module_.experts_per_token; }
  std::int64_t expert_width() const { return module_.expert_ffn / context_.expert_tp; }
  std::int64_t shared_width() const { return module_.shared_ffn / context_.tp; }
  Linear shared_in() const {
    return {size_.tokens, hidden(), 2 * shared_width(), false, low_rank()};
  }
  Linear shared_out() const { return {size_.tokens, shared_width(), hidden(), false, low_rank()}; }
  // Rows that patch_embedding leaves: patches and class tokens.
  std::int64_t embedded_rows() const { return rows_leaving(module_, 1, size_); }
  Linear patches() const {
    return {std::min(own(embedded_rows()), size_.tokens),
            std::int64_t{module_.channels} * module_.patch * module_.patch, hidden(), true};
  }
  // Convolutions over three frames, as products with rows of three frames; the second halves them.
  // A rank's own tokens may need one frame of the token before.
  Linear conv1() const {
    return {std::min(2 * own(size_.tokens) + (sequence() ? 1 : 0), 2 * size_.tokens),
            3 * std::int64_t{module_.mel_bins}, hidden(), true};
  }
  Linear conv2() const { return {own(size_.tokens), 3 * hidden(), hidden(), true}; }
  // Whole on every rank.
  Linear projector_whole() const {
    return {own(size_.tokens), module_.projector_in, module_.projector_out, true};
  }
  Linear projector_in() const {
    return {size_.tokens, module_.projector_in, module_.projector_hidden / context_.tp, true};
  }
  Linear projector_out() const {
    return {size_.tokens, module_.projector_hidden / context_.tp, module_.projector_out, true};
  }
  Linear vocabulary() const {
    return {size_.loss_tokens, hidden(), (module_.vocab + context_.tp - 1) / context_.tp, false};
  }

  void add(KernelKind kind, double flops, std::int64_t bytes, int launches, std::int64_t m = 0,
           std::int64_t n = 0, std::int64_t k = 0) {
    out_.kernels.push_back({kind, layer_, Flops(flops), Bytes(bytes), launches, m, n, k});
  }
  void gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bytes) {
    const double flops =
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    add(KernelKind::gemm, flops, bytes, 1, m, n, k);
  }
  // `passes` reads or writes of `elements` values.
  void passes(std::int64_t elements, int count, int launches) {
    add(KernelKind::elementwise, 0, elements * count * element(), launches);
  }
  void all_reduce(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    reduce(CollectiveKind::all_reduce, rows * width * element(), beside_weights);
  }
  // Own rows [q, width] come together, or partial sums of all rows are summed and go apart: equal
  // parts, padded (exec/autograd/sequence_rows.h).
  void gather(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    reduce(CollectiveKind::all_gather, RowShares{rows, context_.tp}.padded() * width * element(),
           beside_weights);
  }
  void scatter(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    const RowShares shares{rows, context_.tp};
    if (shares.padded() != rows) passes(rows * width, 2, 1);
    reduce(CollectiveKind::reduce_scatter, shares.padded() * width * element(), beside_weights);
  }
  void sum(std::int64_t rows, std::int64_t width, bool beside_weights = false) {
    sequence() ? scatter(rows, width, beside_weights) : all_reduce(rows, width, beside_weights);
  }
  void reduce(CollectiveKind kind, std::int64_t bytes, bool beside_weights = false) {
    if (context_.tp > 1)
      out_.collectives.push_back({kind, Bytes(bytes), GroupKind::tensor, beside_weights});
  }
  void collective(CollectiveKind kind, std::int64_t bytes, GroupKind group) {
    out_.collectives.push_back({kind, Bytes(bytes), group, false});
  }

  std::int64_t gemm_bytes(const Linear& l) const {
    return (l.rows * l.in + l.in * l.out + l.rows * l.out) * element();
  }
  void forward_column(const Linear& l) {
    if (sequence()) gather(l.rows, l.in);
    forward_cut(l);
  }
  void forward_cut(const Linear& l) {  // addmm adds the bias
    gemm(l.rows, l.out, l.in, gemm_bytes(l) + (l.bias ? l.out * element() : 0));
    low_rank_forward(l);
  }
  void forward_row(const Linear& l) {  // the bias is added once, after the sum over ranks
    gemm(l.rows, l.out, l.in, gemm_bytes(l));
    low_rank_forward(l);
    sum(l.rows, l.out);
    if (l.bias) passes(own(l.rows) * l.out, 2, 1);
  }
  void input_gradient(const Linear& l) {
    gemm(l.rows, l.in, l.out, gemm_bytes(l));
    low_rank_backward(l, true);
  }
  void input_gradient_column(const Linear& l) {
    if (sequence() && context_.weight_grad) gather(l.rows, l.in, true);  // for the weight gradient
    input_gradient(l);
    sum(l.rows, l.in, true);
  }
  void input_gradient_row(const Linear& l) {
    if (sequence()) gather(l.rows, l.out);
    input_gradient(l);
  }
  void weight_gradient(const Linear& l) {
    if (lora()) return low_rank_weight(l);
    const std::int64_t accumulated = 2 * l.in * l.out * wide_element();
    gemm(l.out, l.in, l.rows, (l.rows * l.in + l.rows * l.out) * element() + accumulated);
    if (l.bias) passes(l.rows * l.out, 1, 2);  // column sums, added to the gradient
  }
  // A norm over rows × width: forward x -> y; backward dy, x -> dx; its weight reads both again.
  void norm(std::int64_t rows, std::int64_t width) { passes(rows * width, 2, 1); }
  void norm_backward(std::int64_t rows, std::int64_t width) { passes(rows * width, 3, 1); }
  void norm_weight(std::int64_t rows, std::int64_t width) {
    if (!lora()) passes(rows * width, 2, module_.norm == Norm::layer ? 4 : 3);
  }

  // Context parallelism: keys and values of the group's ranks, by sample.
  bool context() const { return context_.cp > 1 && layer_ == LayerKind::decoder_block; }
  std::int64_t key_rows() const { return context() ? size_.gathered : size_.tokens; }
  void move_keys(CollectiveKind kind) {
    if (!context()) return;
    const std::int64_t width = 2 * key_width();
    passes(size_.tokens * width, 2, 1);  // as rows, or back
    out_.collectives.push_back(
        {kind, Bytes(size_.gathered * width * element()), GroupKind::context});
    passes(size_.gathered * width, 2, 1);  // brought into order, or back
  }

  // One attention kernel per sequence: packed sequences do not see each other.
  void attention(double flops_per_pair_and_width, int q_like, int k_like) {
    const double width = static_cast<double>(query_width());
    const double flops = flops_per_pair_and_width * static_cast<double>(size_.pairs) * width;
    const std::int64_t bytes =
        (size_.tokens * q_like * query_width() + key_rows() * k_like * key_width()) * element();
    add(KernelKind::attention, flops, bytes, std::max(1, size_.sequences), 0, 0, module_.head_dim);
  }

  // Rows that come into a projector, before it merges them.
  std::int64_t source_rows() const { return size_.tokens * merged_rows(module_); }
  std::int64_t source_width() const { return module_.projector_in / merged_rows(module_); }
  // A linear projector's ranks join rows of one another.
  bool joins_rows() const { return sequence() && merged_rows(module_) > 1; }

  void patches_forward();
  void audio_forward();
  void audio_backward_input();
  void encoder_norm_forward();
  void encoder_norm_backward_input();
  void linear_projector_forward();
  void linear_projector_backward_input();
  void feed_forward();
  void feed_forward_backward_input();
  // RMSNorm of q and k, their heads side by side; v is copied.
  void head_norm();
  void head_norm_backward();
  void head_norm_weight();
  void embedding_forward();
  void projector_backward_input();
  // shared/layers/lora_kernels.cpp
  void low_rank_forward(const Linear& l);
  void low_rank_backward(const Linear& l, bool input_grad);
  void low_rank_weight(const Linear& l);

  // Latent attention: shared/layers/latent_kernels.cpp.
  bool latent() const { return module_.key_value_rank > 0; }
  Linear query_down() const {
    return {own(size_.tokens), hidden(), module_.query_rank, false, low_rank()};
  }
  Linear query_up() const;
  Linear key_down() const {
    return {own(size_.tokens), hidden(), module_.key_value_rank + module_.rotary_dim, false,
            low_rank()};
  }
  Linear key_up() const;
  std::int64_t latent_heads() const { return module_.heads / context_.tp; }
  void latent_rotate();
  void latent_attention(double products);
  void latent_forward();
  void latent_backward_input();
  void latent_backward_weight();

  void block_forward();
  // From q, k and v to the attention output: what selective recomputation runs again.
  void rotate();
  void core_attention();
  void block_backward_input(bool attention_again);
  void block_backward_weight();
  // shared/layers/moe_kernels.cpp
  void router_gemm(std::int64_t rows);
  void route();
  void expert_exchange();
  void expert_gemms(std::int64_t out, std::int64_t in, bool weight);
  void experts_forward();
  void experts_backward_input();
  void router_backward();
  void experts_backward_weight();
  void head_forward();
  void head_backward_input();

  // Diffusion (shared/layers/diffusion_kernels.cpp).
  Linear time_in() const;
  Linear time_out(int parts) const;
  Linear cross_query() const;
  Linear cross_key_value() const;
  Linear latents_in() const;
  Linear latents_out() const;
  Linear diffusion_fc1() const;
  Linear diffusion_fc2() const;
  bool trains_base() const { return context_.weight_grad && !lora(); }  // beside LoRA's pairs
  bool conditioning_grad() const { return context_.input_grad && context_.edge_grad; }
  std::int64_t between_blocks() const { return own(size_.tokens) * hidden(); }
  void modulation(int parts);
  void modulation_backward(int parts);
  void modulation_weight(int parts);
  void joined();
  void adaptive_norm();
  void adaptive_norm_backward();
  void gated_sum();
  void gated_sum_backward();
  void cross_attention(double flops_per_pair_and_width, int q_like, int k_like);
  void diffusion_forward();
  void diffusion_backward_input(bool attention_again);
  bool across_backward_input();
  void diffusion_backward_weight();
  void latents_forward();
  void flow_forward();
  void flow_backward_input();
  void flow_backward_weight();

  const Module& module_;
  LayerKind layer_;
  const WorkSize& size_;
  const ChunkContext& context_;
  bool input_grad_;  // the layer's input gradient is wanted
  Expansion& out_;
};

}  // namespace polyphony
