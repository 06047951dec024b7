#include "tests/exec/reference/plain_fp8.h"

namespace polyphony::exec::testing {

using torch::Tensor;

Tensor plain_cast(const Tensor& x, torch::Dtype fp8, Fp8Scaling scaling) {
  const Tensor single = x.detach().to(torch::kFloat32);
  const double most = fp8 == torch::kFloat8_e5m2 ? 57344 : 448;
  const Tensor largest =
      scaling == Fp8Scaling::rowwise ? single.abs().amax(1, true) : single.abs().max();
  const Tensor scale = largest.clamp_min(0x1p-126 * most) / most;
  return (single * (1 / scale)).to(fp8).to(x.scalar_type()) * scale;
}

namespace {

class PlainFp8 : public torch::autograd::Function<PlainFp8> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& weight, std::int64_t scaling) {
    context->save_for_backward({x, weight});
    context->saved_data["scaling"] = scaling;
    const auto how = static_cast<Fp8Scaling>(scaling);
    return plain_cast(x, torch::kFloat8_e4m3fn, how)
        .mm(plain_cast(weight, torch::kFloat8_e4m3fn, how).t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto how = static_cast<Fp8Scaling>(context->saved_data["scaling"].toInt());
    const auto of_gradient =
        how == Fp8Scaling::tensorwise ? torch::kFloat8_e5m2 : torch::kFloat8_e4m3fn;
    const Tensor &x = saved[0], &weight = saved[1], &dy = gradients[0];
    // Rows of an operand are those that a sum runs along.
    const Tensor dx = plain_cast(dy, of_gradient, how)
                          .mm(plain_cast(weight.t().contiguous(), torch::kFloat8_e4m3fn, how).t());
    const Tensor dw = plain_cast(dy.t().contiguous(), of_gradient, how)
                          .mm(plain_cast(x.t().contiguous(), torch::kFloat8_e4m3fn, how).t());
    return {dx, dw, Tensor()};
  }
};

}  // namespace

Tensor plain_fp8_linear(const Tensor& x, const Tensor& weight, Fp8Scaling scaling) {
  return PlainFp8::apply(x, weight, static_cast<std::int64_t>(scaling));
}

}  // namespace polyphony::exec::testing
