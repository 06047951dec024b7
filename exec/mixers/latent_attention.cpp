#include "exec/mixers/latent_attention.h"

#include "exec/attention/latent_heads.h"
#include "exec/autograd/recompute.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Returns all rows of the features, which the heads of all ranks read.
Tensor for_all_heads(const Pass& pass, const Tensor& x) {
  std::shared_ptr<const RowExchange> rows = pass.rows;
  if (!rows) rows = std::make_shared<WholeRows>(pass.groups->tensor);
  return all_rows(rows, x);
}

Tensor linear(const Frame& frame, const Layer& layer, const std::string& name, const Tensor& x) {
  return replicated_linear(frame.pass, x, layer.at(name + ".weight"), nullptr);
}

Tensor queries(const Frame& frame, const Layer& layer, const Tensor& normed) {
  if (frame.module.query_rank == 0)
    return linear(frame, layer, "q_up", for_all_heads(frame.pass, normed));
  const Tensor down =
      rms_norm(frame.pass, linear(frame, layer, "q_down", normed), layer.at("q_down_norm.weight"));
  return linear(frame, layer, "q_up", for_all_heads(frame.pass, down));
}

}  // namespace

Tensor latent_attention(const Frame& frame, const Layer& layer, const Tensor& normed) {
  const Module& module = frame.module;
  const std::int64_t rank = module.key_value_rank, rotated = module.rotary_dim;
  Tensor query = queries(frame, layer, normed);
  if (module.score_factor != 1) query = query * module.score_factor;
  const Tensor down = linear(frame, layer, "kv_down", normed);
  const Tensor latent =
      rms_norm(frame.pass, down.narrow(1, 0, rank), layer.at("kv_down_norm.weight"));
  const Tensor rows =
      for_all_heads(frame.pass, at::cat({latent, down.narrow(1, rank, rotated)}, 1));
  const Tensor pairs = linear(frame, layer, "kv_up", rows.narrow(1, 0, rank));

  const auto maker = latent_heads({module.heads / frame.pass.groups->tensor.size(), module.head_dim,
                                   rotated, value_width(module)});
  const std::vector<Tensor> inputs = {query, pairs, rows.narrow(1, rank, rotated)};
  const auto attend = [&plan = frame.sequences, maker](const std::vector<Tensor>& x) {
    return attention(x, plan, maker);
  };
  const Recomputed core = frame.again(layer) == Recompute::selective
                              ? recomputed(frame.pass.anchor.detach(), inputs, attend)
                              : Recomputed{attend(inputs), {}};
  return row_linear(frame.pass, core.output, layer.at("out.weight"), nullptr, core.again);
}

}  // namespace polyphony::exec
