// The end of a training step (exec/parameters/held_parameters.h): gradient norms and AdamW.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "exec/fused/forms.h"
#include "exec/parameters/held_parameters.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Returns Σ x² in double. Eight partial sums let the compiler keep them in vector registers.
template <class T>
double sum_of_squares(const T* x, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// Sums block by block, so that the result is the same on any number of threads.
template <class T>
double sum_over_threads(const T* x, std::int64_t count) {
  constexpr std::int64_t kBlock = 1 << 16;  // 256 KiB of fp32: a fraction of a core's cache
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      sums[static_cast<std::size_t>(b)] =
          sum_of_squares(x + b * kBlock, std::min(kBlock, count - b * kBlock));
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

Tensor sum_of_squares(const Tensor& x) {
  const double sum = x.scalar_type() == torch::kFloat64
                         ? sum_over_threads(x.const_data_ptr<double>(), x.numel())
                         : sum_over_threads(x.const_data_ptr<float>(), x.numel());
  return torch::scalar_tensor(sum, torch::kFloat64);
}

}  // namespace

Tensor HeldParameters::squared_norm() const {
  const auto options = owned_gradient_.options().dtype(torch::kFloat64);
  std::vector<Tensor> parts;
  for (const Interval& part : counted_)
    parts.push_back(owned_gradient_.narrow(0, part.begin, part.size()));
  if (parts.empty()) return torch::zeros({}, options);
  // On a device in the gradients' own format, and without a copy of them: a norm in double would
  // first convert its input, 8 bytes for each parameter at the peak of a step. Pieces keep the sums
  // short: 4 Mi numbers are read by a few blocks of threads.
  if (!owned_gradient_.is_cpu()) {
    constexpr std::int64_t kPiece = std::int64_t{1} << 22;
    std::vector<Tensor> pieces;
    for (const Tensor& part : parts)
      for (std::int64_t begin = 0; begin < part.numel(); begin += kPiece)
        pieces.push_back(part.narrow(0, begin, std::min(kPiece, part.numel() - begin)));
    return torch::stack(at::_foreach_norm(pieces, 2)).to(torch::kFloat64).square_().sum();
  }
  Tensor total = torch::zeros({}, options);
  for (const Tensor& part : parts) total += sum_of_squares(part);
  return total;
}

std::vector<Tensor> HeldParameters::gradient_norms() const {
  std::vector<Tensor> gradients;
  for (const HeldPiece& piece : pieces_)
    if (piece.gradient.defined()) gradients.push_back(piece.gradient);
  return gradients.empty() ? gradients : at::_foreach_norm(gradients, 2);
}

std::string HeldParameters::not_finite(const std::vector<Tensor>& norms) const {
  auto norm = norms.begin();
  for (const HeldPiece& piece : pieces_)
    if (piece.gradient.defined() && !std::isfinite((norm++)->item<double>()))
      return piece.parameter->spec.name;
  return {};
}

void HeldParameters::step(const AdamWOptions& options, double rate, const UpdateTerms& terms) {
  if (!trains()) return;
  const torch::NoGradGuard no_grad;
  if (kernels::wanted(owned_gradient_)) return step_at_once(options, rate, terms);
  // If the clip factor is on the host, a multiplication by 1 is skipped.
  if (terms.clip.defined() && !(terms.clip.is_cpu() && terms.clip.item<double>() == 1.0))
    owned_gradient_.mul_(terms.clip);
  for (const bool decays : {true, false}) {
    std::vector<Tensor> values, gradients, first, second;
    for (const HeldPiece& piece : pieces_) {
      if (!piece.gradient.defined() || piece.parameter->spec.decay != decays) continue;
      values.push_back(piece.master.defined() ? piece.master : piece.value);
      gradients.push_back(piece.gradient);
      first.push_back(piece.first_moment);
      second.push_back(piece.second_moment);
    }
    if (values.empty()) continue;
    const std::vector<Tensor> counts(values.size(), terms.count);
    at::_fused_adamw_(values, gradients, first, second, {}, counts, rate, options.beta1,
                      options.beta2, decays ? options.weight_decay : 0.0, options.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/c10::nullopt,
                      terms.skip);
  }
  if (master_.defined()) {
    for (const HeldPiece& piece : pieces_)
      if (piece.master.defined()) piece.value.copy_(piece.master);
  }
  zero_gradient();
}

void HeldParameters::step_at_once(const AdamWOptions& options, double rate,
                                  const UpdateTerms& terms) {
  std::vector<kernels::AdamWPiece> pieces;
  for (const HeldPiece& piece : pieces_) {
    if (!piece.gradient.defined()) continue;
    pieces.push_back({.value = piece.value,
                      .gradient = piece.gradient,
                      .first = piece.first_moment,
                      .second = piece.second_moment,
                      .master = piece.master,
                      .decays = piece.parameter->spec.decay});
  }
  at_once_.step(pieces, {.beta1 = options.beta1,
                         .beta2 = options.beta2,
                         .epsilon = options.epsilon,
                         .weight_decay = options.weight_decay,
                         .rate = rate,
                         .clip = terms.clip,
                         .count = terms.count,
                         .skip = terms.skip});
  zero_gradient();
}

void HeldParameters::zero_gradient() {
  if (!trains()) return;
  if (gradient_.numel() > 0) gradient_.zero_();
  if (!owned_gradient_.is_alias_of(gradient_)) owned_gradient_.zero_();
}

}  // namespace polyphony::exec
