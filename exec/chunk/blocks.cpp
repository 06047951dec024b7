#include "exec/chunk/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "exec/autograd/glu.h"
#include "exec/autograd/layer_scale.h"
#include "exec/experts/experts.h"
#include "exec/layers/audio.h"
#include "exec/layers/diffusion.h"
#include "exec/layers/patches.h"
#include "exec/layers/projector.h"
#include "exec/layers/vocabulary.h"
#include "exec/mixers/latent_attention.h"
#include "exec/mixers/linear_attention.h"
#include "exec/mixers/self_attention.h"
#include "exec/mixers/short_convolution.h"
#include "exec/on_device.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Embeds the tokens: text rows from the table, all others from the chunk's inputs, in the order of
// the packed axis.
Tensor token_embedding(const Frame& frame, const Layer& layer) {
  const WorkInput& data = frame.data;
  std::vector<Tensor> rows = {embedding(frame.pass, data.token_ids, layer.at("embedding.weight"))};
  // In the format of the rows, as the published model rounds it.
  if (frame.module.scaled_embedding)
    rows.front() =
        rows.front() * at::full({}, std::sqrt(frame.module.hidden), rows.front().options());
  std::vector<Tensor> places = {data.text_rows};
  for (std::size_t i = 0; i < frame.inputs.size(); ++i) {
    if (!frame.inputs[i].defined()) continue;
    rows.push_back(frame.inputs[i]);
    const Tensor& of_edge = data.edge_rows.at(frame.input_edges.at(i));
    places.push_back(frame.own
                         ? SequenceRows(frame.pass.groups->tensor, of_edge.numel()).part(of_edge)
                         : of_edge);
    POLYPHONY_CHECK(rows.back().size(0) == places.back().numel(),
                    rows.back().size(0) << " rows over edge " << frame.input_edges[i] << ", "
                                        << places.back().numel() << " places for them");
  }
  // Text only is already in order. Empty inputs still take part, so that their gradients are
  // defined.
  if (rows.size() == 1 && data.text_rows.numel() == data.positions.size(-1))
    return frame.own ? own_rows(frame.own, rows[0]) : rows[0];
  const Tensor all = at::cat(places);
  if (frame.own)
    return own_rows(frame.own, place_rows(at::cat(rows), all, data.positions.size(-1)));
  POLYPHONY_CHECK(all.numel() == data.positions.size(-1),
                  all.numel() << " rows for " << data.positions.size(-1) << " tokens");
  const Tensor order =
      at::empty_like(all).index_copy_(0, all, at::arange(all.numel(), all.options()));
  return permute_rows(at::cat(rows), order, all);
}

// LayerNorm if it has a bias, else RMSNorm.
Tensor norm(const Frame& frame, const Layer& layer, const std::string& name, const Tensor& x) {
  LocalParameter* bias = layer.find(name + ".bias");
  return bias != nullptr ? layer_norm(frame.pass, x, layer.at(name + ".weight"), bias)
                         : rms_norm(frame.pass, x, layer.at(name + ".weight"));
}

Tensor gelu(const Tensor& x, Gelu kind) {
  constexpr double kQuick = 1.702;  // slope of the sigmoid that approximates Φ
  switch (kind) {
    case Gelu::erf:
      return at::gelu(x);
    case Gelu::tanh:
      return at::gelu(x, "tanh");
    case Gelu::quick:
      return x * at::sigmoid(kQuick * x);
  }
  return x;
}

Tensor feed_forward(const Frame& frame, const Layer& layer, const Tensor& normed) {
  if (block_at(frame.module, layer.position - 1).feed_forward == FeedForwardKind::experts)
    return experts(frame, layer, normed);
  const auto in = [&](const std::string& name) {
    return column_linear(frame.pass, normed, layer.at(name + ".weight"),
                         layer.find(name + ".bias"));
  };
  const auto out = [&](const std::string& name, const Tensor& inner) {
    return row_linear(frame.pass, inner, layer.at(name + ".weight"), layer.find(name + ".bias"));
  };
  if (frame.module.gated) return out("down", glu(in("gate_up"), frame.module.activation));
  return out("fc2", gelu(in("fc1"), frame.module.gelu));
}

using Forward = Tensor (*)(const Frame&, const Layer&, const Tensor&);

// How the rows of a block are mixed, by kind of attention: exec/mixers/KIND.h.
Forward attention_of(AttentionKind kind) {
  struct Row {
    AttentionKind kind;
    Forward forward;
  };
  constexpr std::array kRows{
      Row{AttentionKind::full, self_attention}, Row{AttentionKind::window, self_attention},
      Row{AttentionKind::latent, latent_attention}, Row{AttentionKind::linear, linear_attention},
      Row{AttentionKind::convolution, short_convolution}};
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.kind == kind; });
  POLYPHONY_CHECK(row != kRows.end(), "no executor of " << polyphony::name(kind) << " attention");
  return row->forward;
}

Tensor block(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Forward meet = attention_of(block_at(frame.module, layer.position - 1).attention);
  // The output of each part is also normalized if the module has post-norms, or scaled.
  const auto added = [&](const std::string& number, const Tensor& y) {
    if (frame.module.post_norms) return norm(frame, layer, "post_norm" + number, y);
    if (frame.module.layer_scale == 0) return y;
    return layer_scale(frame.pass, y, layer.at("scale" + number + ".weight"));
  };
  const Tensor middle = x + added("1", meet(frame, layer, norm(frame, layer, "norm1", x)));
  return middle + added("2", feed_forward(frame, layer, norm(frame, layer, "norm2", middle)));
}

// Embeds the patches, and normalizes them if the module has an input norm.
Tensor patch_rows(const Frame& frame, const Layer& layer) {
  const Tensor x = patch_embedding(frame, layer);
  return frame.module.input_norm ? norm(frame, layer, "input_norm", x) : x;
}

Tensor encoder_norm(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Tensor rows = frame.module.class_token ? drop_class_tokens(frame, x) : x;
  if (frame.module.final_norm) return norm(frame, layer, "norm", rows);
  return rows.view_as(rows);  // a chunk's output is never its input
}

// Returns the rows of x that have a label, and how the output matrix gets those of all ranks.
struct LossRows {
  Tensor normed;
  Pass pass;
};
LossRows loss_rows(const Frame& frame, const Layer& head, const Tensor& x) {
  LossRows loss{{}, frame.pass};
  Tensor rows = frame.data.loss_rows;
  if (frame.own) {
    const ListedPart part = frame.own->listed(rows);
    rows = part.rows;
    loss.pass.rows = std::make_shared<ListedRows>(frame.pass.groups->tensor, part.counts);
  }
  loss.normed = norm(frame, head, "norm", select_rows(x, on_device(rows, x.device())));
  return loss;
}

LocalParameter* output_matrix(const Frame& frame, const Layer& head) {
  return head.at(frame.module.tied ? "embedding.weight" : "output.weight");
}

Tensor head_loss(const Frame& frame, const Layer& head, const Tensor& x) {
  const LossRows rows = loss_rows(frame, head, x);
  return vocabulary_loss(rows.pass, rows.normed, frame.data.labels, frame.data.loss_scale,
                         output_matrix(frame, head));
}

// The first layer of a module, which reads the microbatch's data.
template <Tensor (*forward)(const Frame&, const Layer&)>
Tensor of_data(const Frame& frame, const Layer& layer, const Tensor& /*x*/) {
  return forward(frame, layer);
}

// The function of each kind of layer.
Forward forward_of(LayerKind kind) {
  struct Row {
    LayerKind kind;
    Forward forward;
  };
  constexpr std::array kRows{
      Row{LayerKind::patch_embedding, of_data<patch_rows>},
      Row{LayerKind::audio_embedding, of_data<audio_embedding>},
      Row{LayerKind::encoder_block, block},
      Row{LayerKind::decoder_block, block},
      Row{LayerKind::encoder_norm, encoder_norm},
      Row{LayerKind::projector_mlp, projector},
      Row{LayerKind::projector_linear, projector},
      Row{LayerKind::token_embedding, of_data<token_embedding>},
      Row{LayerKind::language_head, head_loss},
      Row{LayerKind::latent_embedding, of_data<latent_embedding>},
      Row{LayerKind::diffusion_block, diffusion_block},
      Row{LayerKind::diffusion_head, diffusion_head},
  };
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.kind == kind; });
  POLYPHONY_CHECK(row != kRows.end(), "no executor of a " << polyphony::name(kind));
  return row->forward;
}

Tensor run_kept(const Frame& frame, const Layer& layer, const Tensor& x) {
  return forward_of(layer.kind)(frame, layer, x);
}

}  // namespace

Tensor run_layer(const Frame& frame, const Layer& layer, const Tensor& x) {
  if (frame.again(layer) != Recompute::full) return run_kept(frame, layer, x);
  // The conditioning, which all blocks of a diffusion chunk read, is an input, too, and gets a
  // gradient from each of them.
  const Tensor& conditioning = frame.latents.conditioning;
  std::vector<Tensor> inputs = {x};
  if (conditioning.defined()) inputs.push_back(conditioning);
  return recomputed(frame.pass.anchor, inputs,
                    [&frame, &layer](const std::vector<Tensor>& again) {
                      if (again.size() == 1) return run_kept(frame, layer, again[0]);
                      Frame reading = frame;
                      reading.latents.conditioning = again[1];
                      return run_kept(reading, layer, again[0]);
                    })
      .output;
}

Predicted predict_layer(const Frame& frame, const Layer& head, const Tensor& x) {
  const LossRows rows = loss_rows(frame, head, x);
  return vocabulary_predict(rows.pass, rows.normed, frame.data.labels, output_matrix(frame, head));
}

}  // namespace polyphony::exec
