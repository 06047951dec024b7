#include "exec/layers/diffusion.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "exec/attention/cross_attention.h"
#include "exec/autograd/adaptive_norm.h"
#include "exec/autograd/saved_call.h"
#include "exec/mixers/self_attention.h"
#include "exec/on_device.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Wavelengths from 2π to 2π·10⁴ in a geometric progression (Vaswani et al., arXiv 1706.03762).
// Times in (0, 1) are scaled to the thousand steps that such features were designed for (Ho et al.,
// arXiv 2006.11239).
constexpr double kLongest = 1e4, kSteps = 1e3;

// [count, frequencies]: value · 10⁴^(−i / frequencies), fp64.
Tensor angles(const Tensor& values, std::int64_t frequencies) {
  const Tensor powers = at::arange(frequencies, values.options()).div_(-frequencies);
  return at::outer(values, at::pow(kLongest, powers));
}

// [count, width]: sines, then cosines of positions on one axis.
Tensor axis(std::int64_t count, std::int64_t width, torch::Device device) {
  const auto wide = torch::dtype(torch::kFloat64).device(device);
  const Tensor angle = angles(at::arange(count, wide), width / 2);
  return at::cat({angle.sin(), angle.cos()}, 1);
}

// Position features of one item: [tokens, H].
Tensor positions(std::int64_t tokens, std::int64_t hidden, const torch::TensorOptions& format) {
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(tokens))));
  if (side * side != tokens) return axis(tokens, hidden, format.device()).to(format);
  const Tensor place = axis(side, hidden / 2, format.device()).to(format);
  return at::cat({place.unsqueeze(1).expand({side, side, hidden / 2}),
                  place.unsqueeze(0).expand({side, side, hidden / 2})},
                 2)
      .view({tokens, hidden});
}

// Returns this rank's part of a tensor with one row per latent token.
Tensor own_part(const Frame& frame, const Tensor& whole) {
  return frame.own ? frame.own->part(whole) : whole;
}

// Interpolates between noise and latent at each item's time.
Tensor noisy(const Frame& frame) {
  const Tensor latents = own_part(frame, frame.data.latents),
               noise = own_part(frame, frame.data.noise);
  Tensor mixed = at::empty_like(latents);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < frame.latents.rows.size(); ++i) {
    const std::int64_t rows = frame.latents.rows[i];
    Tensor part = mixed.narrow(0, first, rows);
    at::lerp_out(part, noise.narrow(0, first, rows), latents.narrow(0, first, rows),
                 frame.data.times[i]);
    first += rows;
  }
  return mixed;
}

std::vector<Tensor> modulation(const Frame& frame, const Layer& layer, std::int64_t parts) {
  const Tensor inner = replicated_linear(frame.pass, frame.latents.time, layer.at("time_in.weight"),
                                         layer.at("time_in.bias"));
  return replicated_linear(frame.pass, at::silu(inner), layer.at("time_out.weight"),
                           layer.at("time_out.bias"))
      .chunk(parts, 1);
}

Tensor across(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Pass& pass = frame.pass;
  const Tensor query = column_linear(
      pass, layer_norm(pass, x, layer.at("cross_norm.weight"), layer.at("cross_norm.bias")),
      layer.at("cross_query.weight"), layer.at("cross_query.bias"));
  const Tensor key_value =
      replicated_linear(pass, frame.latents.conditioning, layer.at("cross_key_value.weight"),
                        layer.at("cross_key_value.bias"));
  const Tensor read = cross_attention(query, key_value, frame.latents.reads, frame.module.head_dim);
  return row_linear(pass, read, layer.at("cross_out.weight"), layer.at("cross_out.bias"));
}

struct FlowCall : torch::CustomClassHolder {
  InnerGroup* rows_of;    // group of ranks with other rows; null: none
  Tensor latents, noise;  // own rows; released after the forward pass
  double scale;
  Tensor difference;                      // prediction − (latent − noise), in at least fp32
  torch::Dtype format = torch::kFloat32;  // of the prediction
  explicit FlowCall(const Frame& frame)
      : rows_of(frame.own ? &frame.pass.groups->tensor : nullptr),
        latents(own_part(frame, frame.data.latents)),
        noise(own_part(frame, frame.data.noise)),
        scale(frame.data.latent_scale * frame.module.loss_weight) {}
};

class FlowLoss : public torch::autograd::Function<FlowLoss> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& prediction,
                        const c10::intrusive_ptr<FlowCall>& call) {
    save_call(context, call);
    const Tensor wide = prediction.element_size() < 4 ? prediction.to(torch::kFloat32) : prediction;
    call->difference = at::sub(wide, std::exchange(call->latents, Tensor()));
    call->difference.add_(std::exchange(call->noise, Tensor()));
    call->format = prediction.scalar_type();
    Tensor loss = call->difference.square().sum().mul_(call->scale);
    if (call->rows_of) call->rows_of->all_reduce(loss);
    return loss;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<FlowCall>(context);
    const Tensor dv = at::mul(call->difference, gradients[0] * (2 * call->scale));
    return {dv.to(call->format), Tensor()};
  }
};

}  // namespace

LatentPlan plan_latents(const WorkInput& data, const Pass& pass, const SequenceRows* own,
                        const Tensor& conditioning) {
  const Tensor times = torch::tensor(data.times, torch::kFloat64).mul_(kSteps);
  const Tensor angle = angles(times, kTimeFeatures / 2);
  LatentPlan plan{data.latent_lengths,
                  on_device(at::cat({angle.cos(), angle.sin()}, 1).to(pass.anchor.scalar_type()),
                            pass.anchor.device()),
                  Tensor(), nullptr};
  if (own) {
    std::int64_t first = 0;
    for (std::int64_t& rows : plan.rows) {
      const std::int64_t begin = std::max(first, own->begin()),
                         end = std::min(first + rows, own->begin() + own->count());
      first += rows;
      rows = std::max<std::int64_t>(0, end - begin);
    }
  }
  if (!conditioning.defined()) return plan;
  InnerGroup& group = pass.groups->tensor;
  const std::int64_t rows = std::accumulate(data.condition_lengths.begin(),
                                            data.condition_lengths.end(), std::int64_t{0});
  const auto shares = std::make_shared<SequenceRows>(group, rows);
  POLYPHONY_CHECK(conditioning.size(0) == (own ? shares->count() : rows),
                  conditioning.sizes() << " of " << rows << " rows that condition "
                                       << data.condition_lengths.size() << " items");
  plan.conditioning = own ? all_rows(shares, conditioning)
                          : all_rows(std::make_shared<WholeRows>(group),
                                     conditioning);  // the heads of all ranks read it
  plan.reads = plan_cross(data.latent_lengths, data.condition_lengths, pass.anchor.device());
  return plan;
}

Tensor latent_embedding(const Frame& frame, const Layer& layer) {
  const Tensor x = replicated_linear(frame.pass, noisy(frame), layer.at("latent_embedding.weight"),
                                     layer.at("latent_embedding.bias"));
  std::vector<Tensor> places;
  for (const std::int64_t tokens : frame.data.latent_lengths)
    places.push_back(positions(tokens, x.size(1), x.options()));
  if (places.empty()) return x;
  return x + own_part(frame, places.size() == 1 ? places[0] : at::cat(places));
}

Tensor diffusion_block(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Pass& pass = frame.pass;
  const std::vector<std::int64_t>& rows = frame.latents.rows;
  const std::vector<Tensor> by_item = modulation(frame, layer, 6);
  const Tensor attended =
      self_attention(frame, layer, adaptive_norm(x, by_item[0], by_item[1], rows));
  Tensor middle = gated_sum(x, attended, by_item[2], rows);
  if (frame.module.condition > 0) middle = middle + across(frame, layer, middle);
  const Tensor inner =
      at::gelu(column_linear(pass, adaptive_norm(middle, by_item[3], by_item[4], rows),
                             layer.at("fc1.weight"), layer.at("fc1.bias")));
  const Tensor outer = row_linear(pass, inner, layer.at("fc2.weight"), layer.at("fc2.bias"));
  return gated_sum(middle, outer, by_item[5], rows);
}

Tensor diffusion_head(const Frame& frame, const Layer& layer, const Tensor& x) {
  const std::vector<Tensor> by_item = modulation(frame, layer, 2);
  const Tensor normed = adaptive_norm(x, by_item[0], by_item[1], frame.latents.rows);
  const Tensor prediction =
      replicated_linear(frame.pass, normed, layer.at("output.weight"), layer.at("output.bias"));
  return FlowLoss::apply(prediction, c10::make_intrusive<FlowCall>(frame));
}

}  // namespace polyphony::exec
