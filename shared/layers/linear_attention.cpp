#include "shared/layers/linear_attention.h"

namespace polyphony {

// The rows of each key head are together: in linear_in [q | k | v of its value heads | their gates
// | their β | their decays], in the convolution [q | k | v].
void LinearAttention::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const std::int64_t keys = m.linear_key_heads, values = m.linear_value_heads,
                     width = m.linear_head_dim;
  add.adapted("linear_in", 2 * (keys + values) * width + 2 * values, m.hidden, Cut::rows, false);
  const auto small = [](Parameter& parameter) { parameter.role = Role::itself; };
  small(add.matrix("linear_conv.weight", (2 * keys + values) * width, m.linear_conv, Cut::rows));
  small(add.vector("linear_decay.weight", values, Cut::rows, Initial::zeros));
  small(add.vector("linear_decay.bias", values, Cut::rows, Initial::ones));
  small(add.head_norm("linear_norm", m.linear_head_dim));
  add.attention_out(values * width, false);
}

// The chunked delta rule; `times` is 1 forward and 2 backward.
void LinearAttention::rule(int times) {
  const double width = module_.linear_head_dim, chunk = kDeltaChunk;
  const double flops = times * static_cast<double>(size_.tokens * value_heads()) *
                       (8 * chunk * width + 6 * width * width);
  // Reads or writes q, k, v, two results of the triangular solve and the output; writes and reads
  // the states.
  const std::int64_t rows = 6 * size_.tokens * values(),
                     states = 2 * (size_.tokens / kDeltaChunk) * values() * module_.linear_head_dim;
  add(KernelKind::attention, flops, times * (rows * element() + states * wide_element()), 5 * times,
      0, 0, module_.linear_head_dim);
}

void LinearAttention::between_matrices() {
  convolution(size_.tokens * mixed(), module_.linear_conv);
  passes(size_.tokens * mixed(), 2, 1);               // SiLU
  passes(size_.tokens * (mixed() - values()), 5, 4);  // q and k scaled to unit length
  passes(size_.tokens * value_heads(), 8, 4);         // α and β
  rule(1);
  passes(size_.tokens * values(), 7, 3);  // norm (2), silu(z) (2), multiplication (3)
}

void LinearAttention::forward() {
  forward_column(in());
  between_matrices();
  forward_row(out());
}

void LinearAttention::backward_input() {
  input_gradient_row(out());
  between_matrices();
  passes(size_.tokens * values(), 14, 6);
  rule(2);
  passes(size_.tokens * value_heads(), 16, 8);
  passes(size_.tokens * (mixed() - values()), 10, 6);
  passes(size_.tokens * mixed(), 3, 1);  // SiLU backward
  convolution_backward(size_.tokens * mixed(), module_.linear_conv);
  if (lora() && !input_grad_) {  // first block of a LoRA module: nothing before its pairs trains
    if (sequence()) gather(size_.tokens, hidden());
    return low_rank_backward(in(), false);
  }
  input_gradient_column(in());
}

void LinearAttention::backward_weight() {
  weight_gradient(out());
  weight_gradient(in());
}

std::string LinearAttention::refused(const Module& module, const ModuleLayout& layout) {
  if (layout.cp > 1)
    return "cp " + std::to_string(layout.cp) +
           " is not supported with linear attention: its state passes from row to row, so the "
           "ranks "
           "of a context group would wait for each other; use cp 1";
  if (module.linear_key_heads % layout.tp == 0) return "";
  return "tp must divide the " + std::to_string(module.linear_key_heads) +
         " linear key heads (got tp " + std::to_string(layout.tp) + ")";
}

std::int64_t LinearAttention::recomputed_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t heads = m.linear_value_heads / bytes.context.tp;
  const bool wanted = bytes.trains() || bytes.adapts();
  return wanted ? bytes.element() * bytes.size.tokens * heads * m.linear_head_dim : 0;
}

std::int64_t LinearAttention::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t inputs = bytes.matrix_input() + bytes.low_rank(2);
  if (!bytes.reaches_attention()) return inputs;
  const std::int64_t keys = m.linear_key_heads, values = m.linear_value_heads;
  const std::int64_t made =
      (2 * (keys + values) * m.linear_head_dim + 2 * values) / bytes.context.tp;
  const bool selective = bytes.recompute == Recompute::selective;
  return inputs + bytes.element() * bytes.size.tokens * made +
         (selective ? 0 : recomputed_bytes(bytes));
}

}  // namespace polyphony
