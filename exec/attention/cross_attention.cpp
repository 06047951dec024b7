#include "exec/attention/cross_attention.h"

#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// One item.
Tensor attend(const Tensor& query, const Tensor& key_value, std::int64_t head_width) {
  const std::int64_t rows = query.size(0), read = key_value.size(0), width = query.size(1);
  // Zeros that keep the graph whole: the linear layers before must run their backwards, collectives
  // and all, on every rank.
  if (rows == 0 || read == 0)
    return at::add(at::mul(query, 0), key_value.narrow(1, 0, width).sum(0));
  const std::int64_t heads = width / head_width;
  const Tensor q = query.view({1, rows, heads, head_width}).transpose(1, 2);
  const std::vector<Tensor> parts =
      key_value.view({1, read, heads, 2, head_width}).permute({3, 0, 2, 1, 4}).unbind(0);
  return at::scaled_dot_product_attention(q, parts[0], parts[1])
      .transpose(1, 2)
      .reshape({rows, width});
}

}  // namespace

Tensor cross_attention(const Tensor& query, const Tensor& key_value,
                       const std::vector<std::int64_t>& lengths,
                       const std::vector<std::int64_t>& condition_lengths,
                       std::int64_t head_width) {
  POLYPHONY_CHECK(lengths.size() == condition_lengths.size(),
                  lengths.size() << " items, conditioning of " << condition_lengths.size());
  if (lengths.size() < 2) return attend(query, key_value, head_width);
  const std::vector<Tensor> queries = query.split_with_sizes(lengths);
  const std::vector<Tensor> read = key_value.split_with_sizes(condition_lengths);
  std::vector<Tensor> outs;
  for (std::size_t i = 0; i < queries.size(); ++i)
    outs.push_back(attend(queries[i], read[i], head_width));
  return at::cat(outs);
}

}  // namespace polyphony::exec
