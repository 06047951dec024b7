#include "shared/layers/feed_forward.h"

namespace polyphony {
namespace {

// Feed-forward parts of a diffusion module have biases and no gate.
bool has_bias(const Module& m) { return m.mlp_bias || m.kind == ModuleKind::diffusion; }
bool has_gate(const Module& m) { return m.gated && m.kind != ModuleKind::diffusion; }

}  // namespace

void FeedForward::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const bool gated = has_gate(m), bias = has_bias(m);
  add.adapted(gated ? "gate_up" : "fc1", (gated ? 2 : 1) * std::int64_t{m.ffn}, m.hidden, Cut::rows,
              bias);
  add.adapted(gated ? "down" : "fc2", m.hidden, m.ffn, Cut::columns, bias);
}

Linear FeedForward::in() const {
  return {size_.tokens, hidden(), (has_gate(module_) ? 2 : 1) * ffn(), has_bias(module_),
          low_rank()};
}
Linear FeedForward::out() const {
  return {size_.tokens, ffn(), hidden(), has_bias(module_), low_rank()};
}

void FeedForward::forward() {
  forward_column(in());
  if (has_gate(module_)) {
    const GatePasses gate = gate_passes(module_.activation, form_);
    passes(size_.tokens * ffn(), gate.forward, gate.forward_launches);
  } else {  // GELU
    passes(size_.tokens * ffn(), 2, 1);
  }
  forward_row(out());
}

void FeedForward::backward_input() {
  input_gradient_row(out());
  if (has_gate(module_)) {
    const GatePasses gate = gate_passes(module_.activation, form_);
    passes(size_.tokens * ffn(), gate.backward, gate.backward_launches);
  } else {  // GELU
    passes(size_.tokens * ffn(), 3, 1);
  }
  input_gradient_column(in());
}

void FeedForward::backward_weight() {
  weight_gradient(out());
  weight_gradient(in());
}

// Passes, by number of reads and writes.
//   silu, gelu  forward: activation of the gate (2), multiplication by up (3). Backward: gradient
//               of up (3), of the activation's output (3), activation backward (3), both
//               interleaved (2 × 2)
//   clamped     forward: gate clamped (2), scaled (2), silu (2), scaled back (2); up clamped (2);
//               multiplication (3). Backward: up clamped (2), gradient of silu's output (3), gate
//               clamped and scaled (4), silu backward (3), silu (2), gradient of up (3 + 2), both
//               clamps backward (2 × 3), both interleaved (2 × 2)
//   own form    forward: reads gate and up, writes their product. Backward: reads both and the
//               product's gradient, writes both gradients
GatePasses gate_passes(Activation activation, KernelForm form) {
  if (form == KernelForm::own) return {3, 1, 5, 1};
  if (activation == Activation::clamped) return {13, 6, 29, 12};
  return {5, 2, 13, 4};
}

std::int64_t activation_bytes(const LayerBytes& bytes, std::int64_t ffn, bool gated) {
  const int parts = (gated ? 2 : 1) + (bytes.trains() || bytes.adapts() ? 1 : 0);
  return bytes.element() * bytes.size.tokens * parts * (ffn / bytes.context.tp);
}

std::int64_t FeedForward::tape(const LayerBytes& bytes) {
  return bytes.matrix_input() + bytes.low_rank(2) +
         activation_bytes(bytes, bytes.module.ffn, has_gate(bytes.module));
}

}  // namespace polyphony
