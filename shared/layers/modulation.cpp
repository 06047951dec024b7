#include "shared/layers/modulation.h"

namespace polyphony {

void Modulated::modulation_parameters(LayerParameters& add, int parts) {
  const Module& m = add.module();
  const std::int64_t width = std::int64_t{parts} * m.hidden;
  add.matrix("time_in.weight", m.modulation, kTimeFeatures, Cut::replicated, Rows::items).input =
      Input::others;  // all layers of a chunk read the same features
  add.vector("time_in.bias", m.modulation, Cut::replicated, Initial::zeros);
  add.zero_matrix("time_out.weight", width, m.modulation, Rows::items);
  add.vector("time_out.bias", width, Cut::replicated, Initial::zeros);
}

std::int64_t Modulated::adaptive_bytes(const LayerBytes& bytes) {
  const std::int64_t each = bytes.element() < 4 ? 2 * bytes.wide() : bytes.element();
  return each * bytes.module.hidden;
}

// Both matrices of the modulation, for n items; `parts` is the number of shifts, scales and gates.
Linear Modulated::time_in() const {
  return {size_.sequences, kTimeFeatures, module_.modulation, true};
}
Linear Modulated::time_out(int parts) const {
  return {size_.sequences, module_.modulation, parts * hidden(), true};
}
void Modulated::modulation(int parts) {
  forward_cut(time_in());
  passes(time_in().rows * time_in().out, 2, 1);  // SiLU
  forward_cut(time_out(parts));
}
// Needed for the weight gradients only, as time features have no gradient.
void Modulated::modulation_backward(int parts) {
  if (!trains_base()) return;
  passes(time_out(parts).rows * time_out(parts).out, 2, 1);  // parts concatenated
  input_gradient(time_out(parts));
  passes(time_in().rows * time_in().out, 3, 1);
}
void Modulated::modulation_weight(int parts) {
  weight_gradient(time_out(parts));
  weight_gradient(time_in());
}

void Modulated::joined() {  // rows of several items copied into one array
  if (size_.sequences != 1) passes(between_blocks(), 2, 1);
}
void Modulated::adaptive_norm() {
  passes(size_.sequences * hidden(), 2, 1);  // 1 + scale
  passes(between_blocks(), 2, size_.sequences);
  joined();
}
void Modulated::adaptive_norm_backward() {
  passes(between_blocks(), 3, size_.sequences);
  if (trains_base()) passes(between_blocks(), 2, 2 * size_.sequences);
  joined();
}
// x + gate∘y
void Modulated::gated_sum() { passes(between_blocks(), 3, size_.sequences); }
void Modulated::gated_sum_backward() {
  passes(between_blocks(), 2, size_.sequences);
  if (trains_base())  // dout∘y (3), column sums (1)
    passes(between_blocks(), 4, 2 * size_.sequences);
}

}  // namespace polyphony
