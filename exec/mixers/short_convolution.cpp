#include "exec/mixers/short_convolution.h"

#include "exec/autograd/recompute.h"
#include "exec/mixers/causal_convolution.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// u [n, L, 3C] of padded samples -> [n, L, C].
Tensor gated(const Tensor& u, const Tensor& taps) {
  // As planes, so that stacking gradients copies whole rows.
  const Tensor planes =
      u.view({u.size(0), u.size(1), u.size(2) / 3, 3}).permute({3, 0, 1, 2}).contiguous();
  const std::vector<Tensor> parts = planes.unbind(0);  // B, C, x
  return parts[1] * causal_convolution(parts[0] * parts[2], taps);
}

}  // namespace

Tensor short_convolution(const Frame& frame, const Layer& layer, const Tensor& normed) {
  const Tensor u = column_linear(frame.pass, normed, layer.at("conv_in.weight"), nullptr);
  const auto run = [&frame, &layer](const std::vector<Tensor>& x) {
    if (frame.sequences.buckets.empty())
      return x[0].narrow(1, 0, x[0].size(1) / 3);  // no rows: keeps the graph connected
    const Tensor taps = parameter_value(frame.pass, layer.at("conv.weight"));
    return by_sample(x[0], frame.sequences, [&](const Tensor& rows) { return gated(rows, taps); });
  };
  const Recomputed met = recomputed(frame.pass.anchor.detach(), {u}, run);
  const bool again = frame.again(layer) == Recompute::selective;
  return row_linear(frame.pass, met.output, layer.at("out.weight"), nullptr,
                    again ? met.again : nullptr);
}

}  // namespace polyphony::exec
