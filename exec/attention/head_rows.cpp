#include "exec/attention/head_rows.h"

#include "exec/fused/forms.h"
#include "exec/fused/rotary.h"

namespace polyphony::exec {

using torch::Tensor;
using Bucket = SequencePlan::Bucket;

namespace {

struct Angles {
  Tensor cosine, sine;
};

// Returns x∘cosine + swapped(x)∘sine, where swapped() swaps the halves of the last axis. The
// transpose has the sine negated. bf16 is rounded once, at the end. If the tables are narrower than
// x, only its first part is rotated.
Tensor rotate(const Tensor& x, const Angles& by, bool transposed) {
  const std::int64_t turned = by.cosine.size(-1), width = x.size(-1);
  if (turned < width)
    return at::cat(
        {rotate(x.narrow(-1, 0, turned), by, transposed), x.narrow(-1, turned, width - turned)},
        -1);
  const Tensor swapped = x.roll(x.size(-1) / 2, -1);
  return at::mul(x, by.cosine).addcmul_(swapped, by.sine, transposed ? -1 : 1).to(x.scalar_type());
}
Tensor rotate(const Tensor& x, const Bucket& bucket, bool transposed) {
  return rotate(x, Angles{bucket.cosine, bucket.sine}, transposed);
}

// For devices: rows stay in place, and heads are views of them, [T, K, …, D]; rotated if there are
// rotary positions.
Tensor rotate_rows(const Tensor& x, const Bucket& bucket, bool transposed) {
  if (!bucket.cosine.defined()) return x;
  const auto by_row = [&](const Tensor& table) {
    return table.view({x.size(0), 1, 1, table.size(-1)});
  };
  return rotate(x, Angles{by_row(bucket.cosine), by_row(bucket.sine)}, transposed);
}
// [rows, turned]
Angles by_rows(const Bucket& bucket) {
  const auto table = [&](const Tensor& x) { return x.view({bucket.rows, x.size(-1)}); };
  return {table(bucket.cosine), table(bucket.sine)};
}
HeadTensors split_rows(const Tensor& qkv, const Bucket& bucket, const HeadShape& heads) {
  const Tensor all = qkv.view({bucket.rows, heads.kv_heads, heads.group + 2, heads.width});
  const auto by_head = [](const Tensor& x) { return x.permute({1, 2, 0, 3}); };
  const Tensor values = by_head(all.narrow(2, heads.group + 1, 1));
  if (bucket.cosine.defined() && kernels::wanted(qkv)) {
    const Angles by = by_rows(bucket);
    const auto turned = kernels::split_turned(all, by.cosine, by.sine);
    return {by_head(turned.queries), by_head(turned.keys), values};
  }
  const Tensor queries = rotate_rows(all.narrow(2, 0, heads.group), bucket, false);
  // Kernels need heads in one dimension; the groups of heads inside qkv do not have one stride.
  return {by_head(heads.group == 1 ? queries : queries.contiguous()),
          by_head(rotate_rows(all.narrow(2, heads.group, 1), bucket, false)), values};
}
Tensor join_rows(const HeadTensors& gradients, const Bucket& bucket, const HeadShape& heads) {
  const auto by_row = [](const Tensor& x) { return x.permute({2, 0, 1, 3}); };
  const std::int64_t width = heads.kv_heads * (heads.group + 2) * heads.width;
  if (bucket.cosine.defined() && kernels::wanted(gradients.queries)) {
    const Angles by = by_rows(bucket);
    return kernels::join_turned(by_row(gradients.queries), by_row(gradients.keys),
                                by_row(gradients.values), by.cosine, by.sine)
        .view({bucket.rows, width});
  }
  return at::cat({rotate_rows(by_row(gradients.queries), bucket, true),
                  rotate_rows(by_row(gradients.keys), bucket, true), by_row(gradients.values)},
                 2)
      .reshape({bucket.rows, width});
}

}  // namespace

Tensor pad_rows(const Tensor& x, const Bucket& bucket) {
  if (!bucket.padded.defined()) return x;
  return at::cat({x, x.new_zeros({1, x.size(1)})}).index_select(0, bucket.padded);
}
Tensor unpad_rows(const Tensor& x, const Bucket& bucket) {
  return bucket.valid.defined() ? x.index_select(0, bucket.valid) : x;
}

Tensor rotate_heads(const Tensor& x, const Bucket& bucket) { return rotate(x, bucket, false); }

HeadTensors split_heads(const Tensor& qkv, const Bucket& bucket, const HeadShape& heads) {
  if (!qkv.is_cpu()) return split_rows(qkv, bucket, heads);
  const std::int64_t batch = bucket.count * heads.kv_heads;
  const Tensor split =
      pad_rows(qkv, bucket)
          .view({bucket.count, bucket.longest, heads.kv_heads, heads.group + 2, heads.width})
          .permute({0, 2, 3, 1, 4});  // [count, K, g+2, L, D]
  Tensor query_key = split.narrow(2, 0, heads.group + 1).contiguous();
  if (bucket.cosine.defined()) query_key = rotate(query_key, bucket, false);
  const Tensor flat = query_key.view({batch, heads.group + 1, bucket.longest, heads.width});
  const Tensor value = split.narrow(2, heads.group + 1, 1).contiguous();
  return {flat.narrow(1, 0, heads.group), flat.narrow(1, heads.group, 1),
          value.view({batch, 1, bucket.longest, heads.width})};
}

Tensor join_gradients(const HeadTensors& gradients, const Bucket& bucket, const HeadShape& heads) {
  if (!gradients.queries.is_cpu()) return join_rows(gradients, bucket, heads);
  const auto shaped = [&](const Tensor& x, std::int64_t part) {
    return x.reshape({bucket.count, heads.kv_heads, part, bucket.longest, heads.width});
  };
  Tensor query_key =
      at::cat({shaped(gradients.queries, heads.group), shaped(gradients.keys, 1)}, 2);
  if (bucket.cosine.defined()) query_key = rotate(query_key, bucket, true);
  const Tensor all = at::cat({query_key, shaped(gradients.values, 1)}, 2).permute({0, 3, 1, 2, 4});
  const std::int64_t width = heads.kv_heads * (heads.group + 2) * heads.width;
  return unpad_rows(all.reshape({bucket.count * bucket.longest, width}), bucket);
}

Tensor join_outputs(const Tensor& out, const Bucket& bucket, const HeadShape& heads) {
  const Tensor rows =
      out.view({bucket.count, heads.kv_heads, heads.group, bucket.longest, heads.width})
          .permute({0, 3, 1, 2, 4})
          .reshape({bucket.count * bucket.longest, heads.kv_heads * heads.group * heads.width});
  return unpad_rows(rows, bucket);
}

Tensor split_outputs(const Tensor& rows, const Bucket& bucket, const HeadShape& heads) {
  return pad_rows(rows, bucket)
      .reshape({bucket.count, bucket.longest, heads.kv_heads, heads.group, heads.width})
      .permute({0, 2, 3, 1, 4})
      .reshape({bucket.count * heads.kv_heads, heads.group, bucket.longest, heads.width});
}

Tensor sinks_of(const Tensor& sinks, std::int64_t count, const HeadShape& heads) {
  return sinks.view({heads.kv_heads, heads.group, 1}).repeat({count, 1, 1});
}

Tensor sum_by_head(const Tensor& of_queries, std::int64_t count, const HeadShape& heads) {
  return of_queries.reshape({count, heads.kv_heads * heads.group, -1}).sum(at::IntArrayRef({0, 2}));
}

}  // namespace polyphony::exec
