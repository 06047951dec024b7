#include "shared/layers/cross_attention.h"

namespace polyphony {

void CrossAttention::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const std::int64_t width = std::int64_t{m.heads} * m.head_dim;
  add.norm("cross_norm", m.hidden, true);
  add.adapted("cross_query", width, m.hidden, Cut::rows, true);
  add.adapted("cross_key_value", 2 * width, m.condition, Cut::rows, false, Rows::condition);
  add.last().input = Input::others;  // all blocks of a chunk read the same rows
  add.vector("cross_key_value.bias", 2 * width, Cut::rows, Initial::zeros);
  add.adapted("cross_out", m.hidden, width, Cut::columns, true);
}

Linear CrossAttention::query() const {
  return {size_.tokens, hidden(), query_width(), true, low_rank()};
}
Linear CrossAttention::key_value() const {
  return {size_.condition, module_.condition, 2 * query_width(), true, low_rank()};
}

void CrossAttention::attention(double flops_per_pair_and_width, int q_like, int k_like) {
  const double width = static_cast<double>(query_width());
  const std::int64_t elements = (q_like * size_.tokens + k_like * size_.condition) * query_width();
  add(KernelKind::attention,
      flops_per_pair_and_width * static_cast<double>(size_.cross_pairs) * width,
      elements * element(), std::max(1, size_.sequences),
      mean_keys(size_.cross_pairs, size_.tokens), flops_per_pair_and_width > 4 ? 2 : 1,
      module_.head_dim);
}

void CrossAttention::forward() {
  norm(own(size_.tokens), hidden());
  forward_column(query());
  forward_cut(key_value());
  attention(4, 2, 2);
  forward_row(out());
  passes(between_blocks(), 3, 1);
}

bool CrossAttention::backward_input() {
  input_gradient_row(out());
  attention(8, 4, 4);
  if (conditioning_grad()) {
    input_gradient(key_value());
    passes(size_.condition * module_.condition, 3, 1);  // added to the gradient of the other blocks
  } else {
    low_rank_backward(key_value(), false);
  }
  if (!input_grad_ && !lora()) return false;
  input_gradient_column(query());
  norm_backward(own(size_.tokens), hidden());
  passes(between_blocks(), 3, 1);
  return true;
}

void CrossAttention::backward_weight() {
  weight_gradient(out());
  weight_gradient(key_value());
  weight_gradient(query());
}

std::int64_t CrossAttention::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t heads = m.heads / bytes.context.tp, width = heads * m.head_dim;
  const std::int64_t tokens = bytes.size.tokens, own = bytes.own(tokens);
  const bool inputs = bytes.trains() || bytes.adapts();
  const std::int64_t pairs =
      bytes.adapts() ? bytes.element() * (2 * tokens + bytes.size.condition) * m.lora_rank : 0;
  // The first block of a frozen module does not need its norm's input and statistics.
  const std::int64_t norm = own * (bytes.element() * m.hidden + 2 * bytes.wide());
  const bool unneeded = bytes.starts && m.trainable == Trainable::frozen;
  return (unneeded ? 0 : norm) + (inputs ? bytes.element() * own * m.hidden : 0) +
         bytes.element() * (tokens * 2 * width + bytes.size.condition * 2 * width) + pairs +
         bytes.wide() * tokens * heads;
}

}  // namespace polyphony
