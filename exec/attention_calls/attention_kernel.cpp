#include "exec/attention_calls/attention_kernel.h"

#include <cmath>
#include <limits>

#include "exec/attention_calls/cudnn_attention.h"
#include "exec/attention_calls/head_width.h"
#include "exec/attention_calls/kernel_choice.h"
#include "exec/autograd/in_order.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/fused/forms.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Values of sdp::CustomMaskType in ATen/native/transformers/sdp_utils_cpp.h.
constexpr std::int64_t kNoMask = 0, kCausalToLast = 2;

bool are_alike(const PackedCall& call) {
  const auto parts = static_cast<std::int64_t>(call.parts.size());
  return call.queries.count == parts * call.queries.longest &&
         call.keys.count == parts * call.keys.longest;
}

AttentionKernel kernel_of(const PackedHeads& heads, const PackedCall& call) {
  KernelNeeds needs{heads.queries.scalar_type(),
                    heads.queries.size(2),
                    call.queries.longest,
                    call.keys.longest,
                    call.left,
                    call.right,
                    call.square,
                    are_alike(call),
                    kernels::capability(heads.queries.device()),
                    cudnn_version(heads.queries.device()),
                    keeps_order()};
  const AttentionKernel kernel = kernel_for(needs);
  if (kernel != AttentionKernel::cudnn || has_cudnn_plan(heads, call)) return kernel;
  needs.alike = false;  // without a plan, as if they were not
  return kernel_for(needs);
}

std::optional<std::int64_t> given(std::int64_t bound) {
  return bound < 0 ? std::nullopt : std::optional(bound);
}

// Returns queries, keys and values padded to one width.
PackedHeads for_flash(const PackedHeads& heads) {
  const std::int64_t width = aligned_width(heads.queries.size(2));
  return {as_wide(heads.queries, width), as_wide(heads.keys, width), as_wide(heads.values, width)};
}
bool is_causal(const PackedCall& call) { return call.left < 0 && call.right == 0; }
// With one query per sequence the kernel would treat groups of heads as queries, on a path made for
// inference.
std::int64_t longest_queries(const PackedCall& call) {
  return std::max<std::int64_t>(2, call.queries.longest);
}

PackedOut flash(const PackedHeads& given_heads, const PackedCall& call) {
  const PackedHeads heads = for_flash(given_heads);
  const auto made = at::_flash_attention_forward(
      heads.queries, heads.keys, heads.values, call.queries.starts, call.keys.starts,
      longest_queries(call), call.keys.longest, /*dropout_p=*/0.0, is_causal(call),
      /*return_debug_mask=*/false, std::optional<double>(scale_of(given_heads.queries)),
      given(call.left), given(call.right));
  return {as_narrow(std::get<0>(made), given_heads.values.size(2)), std::get<1>(made)};
}

PackedHeads flash_backward(const Tensor& dy, const PackedHeads& given_heads,
                           const PackedOut& attended, const PackedCall& call) {
  const PackedHeads heads = for_flash(given_heads);
  const std::int64_t width = heads.queries.size(2);
  // Arguments that only dropout would read.
  const Tensor state = at::empty({2}, heads.queries.options().dtype(torch::kUInt64));
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      as_wide(dy, width), heads.queries, heads.keys, heads.values, as_wide(attended.out, width),
      attended.sums.contiguous(), call.queries.starts, call.keys.starts, longest_queries(call),
      call.keys.longest, /*dropout_p=*/0.0, is_causal(call), state, at::empty({0}, state.options()),
      std::optional<double>(scale_of(given_heads.queries)), given(call.left), given(call.right));
  return {as_narrow(dq, given_heads.queries.size(2)), as_narrow(dk, given_heads.keys.size(2)),
          as_narrow(dv, given_heads.values.size(2))};
}

// [rows, K, W] -> [1, rows, H, W].
Tensor for_each_head(const Tensor& x, std::int64_t heads) {
  const Tensor wide = as_wide(x, aligned_width(x.size(2)));
  const std::int64_t group = heads / x.size(1);
  if (group == 1) return wide.unsqueeze(0);
  return wide.unsqueeze(2).expand({-1, -1, group, -1}).reshape({1, x.size(0), heads, -1});
}
PackedHeads for_efficient(const PackedHeads& heads) {
  const std::int64_t all = heads.queries.size(1);
  return {for_each_head(heads.queries, all), for_each_head(heads.keys, all),
          for_each_head(heads.values, all)};
}
// Turns the kernel's [1, rows, H, W] into the shape of `like`.
Tensor of_each_head(const Tensor& x, const Tensor& like) {
  const Tensor all = as_narrow(x[0], like.size(2));
  if (like.size(1) == all.size(1)) return all;
  return all.unflatten(1, {like.size(1), -1}).sum(2);
}
std::int64_t mask_of(const PackedCall& call) { return call.right == 0 ? kCausalToLast : kNoMask; }
// The kernel's window includes the key on the diagonal.
std::optional<std::int64_t> window_of(const PackedCall& call) {
  return call.left < 0 ? std::nullopt : std::optional(call.left + 1);
}

PackedOut efficient(const PackedHeads& given_heads, const PackedCall& call) {
  const PackedHeads heads = for_efficient(given_heads);
  const auto made = at::_efficient_attention_forward(
      heads.queries, heads.keys, heads.values, /*bias=*/{}, call.queries.starts, call.keys.starts,
      call.queries.longest, call.keys.longest, /*dropout_p=*/0.0, mask_of(call),
      /*compute_log_sumexp=*/true, scale_of(given_heads.queries), /*seqlen_k=*/{}, window_of(call));
  const Tensor sums = std::get<1>(made);  // [rectangles, H, padded]
  return {as_narrow(std::get<0>(made)[0], given_heads.values.size(2)),
          sums.transpose(0, 1).flatten(1).index_select(1, call.padded)};
}

PackedHeads efficient_backward(const Tensor& dy, const PackedHeads& given_heads,
                               const PackedOut& attended, const PackedCall& call) {
  const PackedHeads heads = for_efficient(given_heads);
  const std::int64_t rectangles = call.queries.starts.size(0) - 1, all = heads.queries.size(2);
  const Tensor sums = at::full({all, rectangles * call.padded_length()},
                               std::numeric_limits<double>::infinity(), attended.sums.options())
                          .index_copy_(1, call.padded, attended.sums)
                          .view({all, rectangles, call.padded_length()})
                          .transpose(0, 1)
                          .contiguous();
  const Tensor state = at::empty({}, torch::kInt64);  // only dropout would read it; on the host
  const auto [dq, dk, dv, bias] = at::_efficient_attention_backward(
      for_each_head(dy, all), heads.queries, heads.keys, heads.values, /*bias=*/{},
      for_each_head(attended.out, all).contiguous(), call.queries.starts, call.keys.starts,
      call.queries.longest, call.keys.longest, sums, /*dropout_p=*/0.0, state, state, mask_of(call),
      /*bias_requires_grad=*/false, scale_of(given_heads.queries), /*num_splits_key=*/std::nullopt,
      window_of(call));
  return {of_each_head(dq, given_heads.queries), of_each_head(dk, given_heads.keys),
          of_each_head(dv, given_heads.values)};
}

// The tensors of one rectangle: [K, g, rows, W] in the format of sums.
Tensor by_head(const Tensor& x, Interval rows, std::int64_t kv_heads) {
  return widened(x.narrow(0, rows.begin, rows.size()))
      .unflatten(1, {kv_heads, -1})
      .permute({1, 2, 0, 3});
}
Tensor by_row(const Tensor& x) { return x.permute({2, 0, 1, 3}).flatten(1, 2); }

Tensor scores(const Tensor& queries, const Tensor& keys, const AttentionCall& part, double scale) {
  const Tensor all = at::matmul(queries, keys.transpose(2, 3)).mul_(scale);
  const auto whole = queries.options().dtype(torch::kInt64);
  const Tensor behind = at::arange(part.keys.size(), whole).unsqueeze(0) -
                        at::arange(part.queries.size(), whole).unsqueeze(1);
  return all.masked_fill_(behind.lt(part.least).logical_or_(behind.gt(part.most)),
                          -std::numeric_limits<double>::infinity());
}

PackedOut plain(const PackedHeads& heads, const PackedCall& call) {
  std::vector<Tensor> outs, sums;
  const std::int64_t kv_heads = heads.keys.size(1);
  for (const AttentionCall& part : call.parts) {
    const Tensor all =
        scores(by_head(heads.queries, part.queries, kv_heads),
               by_head(heads.keys, part.keys, kv_heads), part, scale_of(heads.queries));
    sums.push_back(at::logsumexp(all, 3).flatten(0, 1));
    const Tensor out = at::matmul(at::softmax(all, 3), by_head(heads.values, part.keys, kv_heads));
    outs.push_back(by_row(out).to(heads.queries.scalar_type()));
  }
  return {at::cat(outs), at::cat(sums, 1)};
}

PackedHeads plain_backward(const Tensor& dy, const PackedHeads& heads, const PackedOut& attended,
                           const PackedCall& call) {
  const std::int64_t kv_heads = heads.keys.size(1);
  const double scale = scale_of(heads.queries);
  std::vector<Tensor> dq, dk, dv;
  for (const AttentionCall& part : call.parts) {
    const auto own = [&](const Tensor& x) { return by_head(x, part.queries, kv_heads); };
    const Tensor q = own(heads.queries), d_out = own(dy), out = own(attended.out);
    const Tensor k = by_head(heads.keys, part.keys, kv_heads);
    const Tensor v = by_head(heads.values, part.keys, kv_heads);
    const Tensor sums = attended.sums.narrow(1, part.queries.begin, part.queries.size())
                            .unflatten(0, {kv_heads, -1})
                            .unsqueeze(3);
    const Tensor weights = scores(q, k, part, scale).sub_(sums).exp_();
    const Tensor slope = at::matmul(d_out, v.transpose(2, 3))
                             .sub_(at::mul(d_out, out).sum(3, /*keepdim=*/true))
                             .mul_(weights)
                             .mul_(scale);
    const auto summed = [](const Tensor& x) { return x.sum(1, /*keepdim=*/true); };
    dq.push_back(by_row(at::matmul(slope, k)));
    dk.push_back(by_row(summed(at::matmul(slope.transpose(2, 3), q))));
    dv.push_back(by_row(summed(at::matmul(weights.transpose(2, 3), d_out))));
  }
  const auto all = [&](const std::vector<Tensor>& parts) {
    return at::cat(parts).to(heads.queries.scalar_type());
  };
  return {all(dq), all(dk), all(dv)};
}

}  // namespace

PackedOut attend_call(const PackedHeads& heads, const PackedCall& call) {
  switch (kernel_of(heads, call)) {
    case AttentionKernel::cudnn:
      return cudnn_attention(heads, call);
    case AttentionKernel::flash:
      return flash(heads, call);
    case AttentionKernel::efficient:
      return efficient(heads, call);
    case AttentionKernel::plain:
      return plain(heads, call);
  }
  return {};
}

PackedHeads attend_call_backward(const Tensor& dy, const PackedHeads& heads,
                                 const PackedOut& attended, const PackedCall& call) {
  const InOrder in_order;
  switch (kernel_of(heads, call)) {
    case AttentionKernel::cudnn:
      return cudnn_attention_backward(dy, heads, attended, call);
    case AttentionKernel::flash:
      return flash_backward(dy, heads, attended, call);
    case AttentionKernel::efficient:
      return efficient_backward(dy, heads, attended, call);
    case AttentionKernel::plain:
      return plain_backward(dy, heads, attended, call);
  }
  return {};
}

}  // namespace polyphony::exec
