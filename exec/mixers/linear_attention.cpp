#include "exec/mixers/linear_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/autograd/recompute.h"
#include "exec/mixers/causal_convolution.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Rows per chunk: as in published kernels (fla-org/flash-linear-attention), and short enough that
// the triangular systems are cheap compared with the matrix multiplications.
constexpr std::int64_t kChunk = 64;
// Added under the square root of a query's or key's length, as in the same kernels.
constexpr double kLengthEpsilon = 1e-6;

// Sizes on this rank.
struct RuleShape {
  std::int64_t key_heads, values_each, width, taps;
  std::int64_t values() const { return key_heads * values_each; }
  double norm_epsilon;
  std::int64_t channels() const { return (2 + values_each) * width; }  // per key head
};
struct RuleWeights {
  Tensor conv, decay, shift, norm;  // [K·(2 + r)·D, taps], [V], [V], [D], at least fp32
};

Tensor of_length_one(const Tensor& x) {
  return x * (x.square().sum(-1, /*keepdim=*/true) + kLengthEpsilon).rsqrt();
}

// Queries, keys and values of the value heads, and how each row decays and corrects the state.
struct RuleInputs {
  Tensor q, k, v;          // [n, V, L, D]
  Tensor log_decay, rate;  // [n, V, L]: ln α, β
};

// Applies the rule to rows, starting from a state of zeros: [n, V, L, D]. kChunk divides L.
Tensor delta_rule(const RuleInputs& in, std::int64_t chunk) {
  const std::int64_t count = in.q.size(2) / chunk;
  const auto cut = [&](const Tensor& x) {
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape[2] = chunk;
    shape.insert(shape.begin() + 2, count);
    return x.reshape(shape);  // [n, V, chunks, C, …]
  };
  const Tensor q = cut(in.q), k = cut(in.k), rate = cut(in.rate).unsqueeze(-1);
  const Tensor total = cut(in.log_decay).cumsum(3);  // since the start of the chunk
  const auto square = q.options().dtype(torch::kBool);
  const Tensor later = at::ones({chunk, chunk}, square).triu(1);
  // Decay from row j to row i ≥ j.
  const Tensor between = (total.unsqueeze(4) - total.unsqueeze(3))
                             .masked_fill(later, -std::numeric_limits<double>::infinity())
                             .exp();
  const Tensor scaled = k * rate;
  // The correction of row i needs those of the rows before it: (I + A) T = I, A strictly lower
  // triangular.
  const Tensor system =
      at::matmul(scaled, k.transpose(3, 4)).mul(between).tril(-1) + at::eye(chunk, q.options());
  const Tensor since = total.exp().unsqueeze(-1);
  const Tensor solved = at::linalg_solve_triangular(
      system, at::cat({scaled * since, cut(in.v) * rate}, 4), /*upper=*/false, /*left=*/true,
      /*unitriangular=*/true);
  const std::vector<Tensor> parts = solved.split_with_sizes({k.size(4), in.v.size(3)}, 4);
  const Tensor scores = at::matmul(q, k.transpose(3, 4)).mul(between);
  const Tensor queries = q * since;
  const Tensor last = total.narrow(3, chunk - 1, 1);
  const Tensor keys = (k * (last - total).exp().unsqueeze(-1)).transpose(3, 4);
  const Tensor whole = last.exp().unsqueeze(-1);
  std::vector<Tensor> outs;
  Tensor state;  // [n, V, D, D]
  for (std::int64_t c = 0; c < count; ++c) {
    const auto at_chunk = [&](const Tensor& x) { return x.select(2, c); };
    Tensor news = at_chunk(parts[1]);
    if (state.defined()) news = news - at::matmul(at_chunk(parts[0]), state);
    Tensor out = at::matmul(at_chunk(scores), news);
    if (state.defined()) out = out + at::matmul(at_chunk(queries), state);
    outs.push_back(out);
    const Tensor added = at::matmul(at_chunk(keys), news);
    state = state.defined() ? state * at_chunk(whole) + added : added;
  }
  return at::cat(outs, 2);
}

// u [n, L, K·((2 + 2r)·D + 2r)] of padded sequences -> [n, L, V·D].
Tensor sequences_out(const Tensor& u, const RuleShape& shape, const RuleWeights& weights) {
  const std::int64_t n = u.size(0), length = u.size(1), r = shape.values_each, d = shape.width;
  const std::vector<Tensor> parts =
      u.view({n, length, shape.key_heads, -1}).split_with_sizes({shape.channels(), r * d, r, r}, 3);
  const auto by_head = [&](const Tensor& x, std::int64_t heads) {
    return x.reshape({n, length, heads, -1}).transpose(1, 2);
  };
  const Tensor mixed =
      at::silu(causal_convolution(parts[0].reshape({n, length, shape.key_heads * shape.channels()}),
                                  weights.conv))
          .view({n, length, shape.key_heads, shape.channels()});
  // Each key head is repeated for its value heads.
  const auto shared = [&](std::int64_t first) {
    return of_length_one(by_head(mixed.narrow(3, first, d), shape.key_heads))
        .repeat_interleave(r, 1);
  };
  RuleInputs in{shared(0) / std::sqrt(static_cast<double>(d)), shared(d),
                by_head(mixed.narrow(3, 2 * d, r * d), shape.values()), Tensor(),
                by_head(parts[2].sigmoid(), shape.values()).squeeze(3)};
  in.log_decay =
      by_head(at::softplus(parts[3].reshape({n, length, shape.values()}) + weights.shift) *
                  -weights.decay.exp(),
              shape.values())
          .squeeze(3);
  const std::int64_t chunk = std::min(kChunk, length), extra = (chunk - length % chunk) % chunk;
  if (extra > 0) {  // rows after the last change nothing before them
    for (Tensor* x : {&in.q, &in.k, &in.v}) *x = at::constant_pad_nd(*x, {0, 0, 0, extra});
    for (Tensor* x : {&in.log_decay, &in.rate}) *x = at::constant_pad_nd(*x, {0, extra});
  }
  const Tensor out = delta_rule(in, chunk).narrow(2, 0, length);
  const Tensor normed =
      out * (out.square().mean(-1, /*keepdim=*/true) + shape.norm_epsilon).rsqrt() * weights.norm;
  return (normed * at::silu(by_head(parts[1], shape.values())))
      .transpose(1, 2)
      .reshape({n, length, shape.values() * d});
}

}  // namespace

Tensor linear_attention(const Frame& frame, const Layer& layer, const Tensor& normed) {
  const Module& module = frame.module;
  const std::int64_t tp = frame.pass.groups->tensor.size();
  const RuleShape shape{module.linear_key_heads / tp,
                        module.linear_value_heads / module.linear_key_heads, module.linear_head_dim,
                        module.linear_conv, module.norm_epsilon};
  const Tensor u = column_linear(frame.pass, normed, layer.at("linear_in.weight"), nullptr);
  const auto run = [&frame, &layer, shape](const std::vector<Tensor>& x) {
    if (frame.sequences.buckets.empty())
      return x[0].narrow(1, 0, shape.values() * shape.width);  // no rows: keeps the graph connected
    const auto value = [&](const char* name) {
      return parameter_value(frame.pass, layer.at(name));
    };
    const RuleWeights weights{value("linear_conv.weight"), value("linear_decay.weight"),
                              value("linear_decay.bias"), value("linear_norm.weight")};
    return by_sample(x[0], frame.sequences,
                     [&](const Tensor& rows) { return sequences_out(rows, shape, weights); });
  };
  const Recomputed rule = recomputed(frame.pass.anchor.detach(), {u}, run);
  const bool again = frame.again(layer) == Recompute::selective;
  return row_linear(frame.pass, rule.output, layer.at("out.weight"), nullptr,
                    again ? rule.again : nullptr);
}

}  // namespace polyphony::exec
