#include "shared/layers/linear_attention.h"

namespace polyphony {

// Of each key head all of its rows together: in the matrix [q | k | v of its value heads | their
// gates | their β | their decays], in the convolution [q | k | v].
void LinearAttention::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const std::int64_t keys = m.linear_key_heads, values = m.linear_value_heads,
                     width = m.linear_head_dim;
  add.matrix("linear_in.weight", 2 * (keys + values) * width + 2 * values, m.hidden, Cut::rows);
  add.matrix("linear_conv.weight", (2 * keys + values) * width, m.linear_conv, Cut::rows).role =
      Role::none;
  add.vector("linear_decay.weight", values, Cut::rows, Initial::zeros);
  add.vector("linear_decay.bias", values, Cut::rows, Initial::ones);
  Parameter& norm = add.head_norm("linear_norm", m.linear_head_dim);
  norm.role = Role::norm;
  norm.rows = Rows::value_heads;
  add.attention_out(values * width, false);
}

// The chunked rule: 1 forward, 2 backward.
void LinearAttention::rule(int times) {
  const double width = module_.linear_head_dim, chunk = kDeltaChunk;
  const double flops = times * static_cast<double>(size_.tokens * value_heads()) *
                       (10 * chunk * width + 6 * width * width + chunk * chunk);
  // q, k, v, two products of the solve, the output; the states written and read.
  const std::int64_t rows = 6 * size_.tokens * values(),
                     states = 2 * (size_.tokens / kDeltaChunk) * values() * module_.linear_head_dim;
  add(KernelKind::attention, flops, times * (rows * element() + states * wide_element()), 5 * times,
      0, 0, module_.linear_head_dim);
}

void LinearAttention::again() { rule(1); }

void LinearAttention::forward() {
  forward_column(in());
  // A product and a sum a tap, SiLU (2); q and k to length one (as a norm of heads: 5).
  passes(size_.tokens * mixed(), 3 * module_.linear_conv + 2, module_.linear_conv + 1);
  passes(size_.tokens * (mixed() - values()), 5, 4);
  passes(size_.tokens * value_heads(), 8, 4);  // α and β
  again();
  passes(size_.tokens * values(), 7, 3);  // normed (2), silu(z) (2), their product (3)
  forward_row(out());
}

void LinearAttention::backward_input() {
  input_gradient_row(out());
  passes(size_.tokens * values(), 14, 6);
  rule(2);
  passes(size_.tokens * value_heads(), 16, 8);
  passes(size_.tokens * (mixed() - values()), 10, 6);
  // Through SiLU (3), and a product and a sum a tap for the input and for the taps.
  passes(size_.tokens * mixed(), 6 * module_.linear_conv + 3, 2 * module_.linear_conv + 1);
  if (lora() && !input_grad_) return;  // nothing before it trains
  input_gradient_column(in());
}

void LinearAttention::backward_weight() {
  weight_gradient(out());
  if (lora()) return;
  norm_weight(size_.tokens, values());
  weight_gradient(in());
}

std::int64_t LinearAttention::again_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t heads = m.linear_value_heads / bytes.context.tp, width = m.linear_head_dim;
  const std::int64_t chunks = (bytes.size.tokens + kDeltaChunk - 1) / kDeltaChunk;
  return bytes.element() * bytes.size.tokens * heads * width +
         bytes.wide() * chunks * heads * width * width;
}

std::int64_t LinearAttention::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t inputs = (bytes.trains() ? bytes.input() : 0) + bytes.low_rank(1);
  if (!bytes.reaches_attention()) return inputs;
  const std::int64_t tokens = bytes.size.tokens, tp = bytes.context.tp, width = m.linear_head_dim,
                     heads = m.linear_value_heads / tp, values = heads * width,
                     mixed = values + 2 * m.linear_key_heads / tp * width;
  const int gated = bytes.trains() || bytes.adapts() ? 2 : 1;  // z, and what the matrix reads
  const bool selective = bytes.recompute == Recompute::selective;
  return inputs + bytes.element() * tokens * (2 * mixed + gated * values) +
         3 * bytes.wide() * tokens * heads + (selective ? 0 : again_bytes(bytes));
}

}  // namespace polyphony
