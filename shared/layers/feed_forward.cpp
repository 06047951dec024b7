#include "shared/layers/feed_forward.h"

namespace polyphony {
namespace {

// A diffusion module's have biases and no gate.
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
  // SwiGLU: silu(gate) (2), product (3). GELU: 2.
  if (has_gate(module_)) {
    passes(size_.tokens * ffn(), 5, 2);
  } else {
    passes(size_.tokens * ffn(), 2, 1);
  }
  forward_row(out());
}

void FeedForward::backward_input() {
  input_gradient_row(out());
  // SwiGLU: the up gradient (3), the gate gradient before silu (3), silu's backward (3), both
  // joined (2 × 2). GELU: 3.
  if (has_gate(module_)) {
    passes(size_.tokens * ffn(), 13, 4);
  } else {
    passes(size_.tokens * ffn(), 3, 1);
  }
  input_gradient_column(in());
}

void FeedForward::backward_weight() {
  weight_gradient(out());
  weight_gradient(in());
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
