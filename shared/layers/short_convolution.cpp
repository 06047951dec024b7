#include "shared/layers/short_convolution.h"

namespace polyphony {

void ShortConvolution::parameters(LayerParameters& add) {
  const Module& m = add.module();
  add.adapted("conv_in", 3 * std::int64_t{m.hidden}, m.hidden, Cut::rows, false);
  add.matrix("conv.weight", m.hidden, m.short_conv, Cut::rows).role = Role::itself;
  add.attention_out(m.hidden, false);
}

void ShortConvolution::between_matrices() {
  passes(elements(), 3, 1);  // B ∘ x
  convolution(elements(), module_.short_conv);
  passes(elements(), 3, 1);  // C ∘ z
}

void ShortConvolution::forward() {
  forward_column(in());
  between_matrices();
  forward_row(out());
}

void ShortConvolution::backward_input() {
  input_gradient_row(out());
  between_matrices();
  passes(elements(), 6, 2);  // gradients of C and z
  convolution_backward(elements(), module_.short_conv);
  passes(elements(), 6, 2);      // gradients of B and x
  if (lora() && !input_grad_) {  // first block of a LoRA module: nothing before its pairs trains
    if (sequence()) gather(size_.tokens, hidden());
    return low_rank_backward(in(), false);
  }
  input_gradient_column(in());
}

void ShortConvolution::backward_weight() {
  weight_gradient(out());
  weight_gradient(in());
}

std::string ShortConvolution::refused(const Module& module, const ModuleLayout& layout) {
  if (layout.cp > 1)
    return "cp " + std::to_string(layout.cp) +
           " is not supported with short convolutions: a rank of a context group lacks the rows "
           "just before its own; use cp 1";
  if (module.hidden % layout.tp == 0) return "";
  return "tp must divide the " + std::to_string(module.hidden) + " channels (got tp " +
         std::to_string(layout.tp) + ")";
}

std::int64_t ShortConvolution::recomputed_bytes(const LayerBytes& bytes) {
  const bool wanted = bytes.trains() || bytes.adapts();
  return wanted ? bytes.element() * bytes.size.tokens * (bytes.module.hidden / bytes.context.tp)
                : 0;
}

std::int64_t ShortConvolution::tape(const LayerBytes& bytes) {
  const std::int64_t inputs = bytes.matrix_input() + bytes.low_rank(2);
  if (!bytes.reaches_attention()) return inputs;
  const std::int64_t made = 3 * bytes.module.hidden / bytes.context.tp;
  const bool selective = bytes.recompute == Recompute::selective;
  return inputs + bytes.element() * bytes.size.tokens * made +
         (selective ? 0 : recomputed_bytes(bytes));
}

}  // namespace polyphony
