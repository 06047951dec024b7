#include "exec/blocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "exec/context_attention.h"
#include "exec/diffusion.h"
#include "exec/experts.h"
#include "exec/self_attention.h"
#include "exec/swiglu.h"
#include "exec/vocabulary.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

std::int64_t grid_side(std::int64_t patches) {
  const auto side =
      static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(patches))));
  POLYPHONY_CHECK(side * side == patches, patches << " patches are no square");
  return side;
}

// Rows of the position table: a smaller image takes the table's upper left corner.
Tensor position_rows(const std::vector<std::int64_t>& lengths, std::int64_t table_rows,
                     torch::Device device) {
  const std::int64_t table_side = grid_side(table_rows);
  std::vector<std::int64_t> rows;
  for (const std::int64_t patches : lengths) {
    const std::int64_t side = grid_side(patches);
    POLYPHONY_CHECK(side <= table_side,
                    "an image of " << patches << " patches, " << table_rows << " positions");
    for (std::int64_t i = 0; i < patches; ++i) rows.push_back(i / side * table_side + i % side);
  }
  return torch::tensor(rows, torch::kInt64).to(device);
}

Tensor patch_embedding(const Frame& frame, const Layer& layer) {
  LocalParameter* table = layer.at("patch_embedding.position");
  const std::vector<std::int64_t>& lengths = frame.data.image_lengths;
  const std::int64_t places = table->value.size(0);
  const Tensor& patches = frame.data.patches;
  const Tensor x =
      replicated_linear(frame.pass, frame.own ? frame.own->part(patches) : patches,
                        layer.at("patch_embedding.weight"), layer.at("patch_embedding.bias"));
  Tensor rows;
  if (frame.own)
    rows = frame.own->part(position_rows(lengths, places, x.device()));
  else if (std::any_of(lengths.begin(), lengths.end(), [&](auto n) { return n != places; }))
    rows = position_rows(lengths, places, x.device());
  return add_position(frame.pass, x, rows, table);
}

// The order in which the patches of each m×m cell are together, rows of the cell one after another,
// and what undoes it.
struct CellOrder {
  Tensor index, inverse;  // [P]
};
CellOrder cell_order(const std::vector<std::int64_t>& lengths, std::int64_t merge,
                     torch::Device device) {
  std::vector<std::int64_t> order;
  std::int64_t first = 0;
  for (const std::int64_t patches : lengths) {
    const std::int64_t side = grid_side(patches);
    POLYPHONY_CHECK(side % merge == 0, side << " patches a side do not merge by " << merge);
    const std::int64_t cells = side / merge;
    for (std::int64_t cell = 0; cell < cells * cells; ++cell) {
      for (std::int64_t i = 0; i < merge * merge; ++i) {
        const std::int64_t row = cell / cells * merge + i / merge;
        order.push_back(first + row * side + cell % cells * merge + i % merge);
      }
    }
    first += patches;
  }
  const Tensor index = torch::tensor(order, torch::kInt64).to(device);
  return {index, at::empty_like(index).index_copy_(0, index, at::arange(first, index.options()))};
}

// fc1 of the merged patches: [P, H] -> [P/m², m²·H] -> [P/m², inner width].
Tensor projector_in(const Frame& frame, const Layer& layer, const Tensor& x) {
  const std::int64_t merge = frame.module.merge, merged = merge * merge;
  LocalParameter *weight = layer.at("fc1.weight"), *bias = layer.at("fc1.bias");
  if (merge == 1) return column_linear(frame.pass, x, weight, bias);
  const CellOrder order = cell_order(frame.data.image_lengths, merge, x.device());
  const std::int64_t patches = order.index.numel();
  if (frame.own) {
    Pass gathers = frame.pass;
    gathers.rows = std::make_shared<MergedRows>(SequenceRows(frame.pass.groups->tensor, patches),
                                                order.index, order.inverse, merged);
    return column_linear(gathers, x, weight, bias);
  }
  POLYPHONY_CHECK(patches == x.size(0), patches << " patches listed, " << x.size(0) << " rows");
  const Tensor cells = permute_rows(x, order.index, order.inverse);
  return column_linear(frame.pass, cells.view({patches / merged, merged * x.size(1)}), weight,
                       bias);
}

Tensor projector(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Tensor inner = projector_in(frame, layer, x);
  return row_linear(frame.pass, at::gelu(inner), layer.at("fc2.weight"), layer.at("fc2.bias"));
}

// Text rows from the table, all others from the chunk's inputs, in the order of the packed axis.
Tensor token_embedding(const Frame& frame, const Layer& layer) {
  const WorkInput& data = frame.data;
  std::vector<Tensor> rows = {embedding(frame.pass, data.token_ids, layer.at("embedding.weight"))};
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
  const Tensor all = at::cat(places);
  if (frame.own) return own_rows(frame.own, place_rows(at::cat(rows), all, data.positions.numel()));
  POLYPHONY_CHECK(all.numel() == data.positions.numel(),
                  all.numel() << " rows for " << data.positions.numel() << " tokens");
  const Tensor order =
      at::empty_like(all).index_copy_(0, all, at::arange(all.numel(), all.options()));
  return permute_rows(at::cat(rows), order, all);
}

Tensor vision_block(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Pass& pass = frame.pass;
  const Tensor middle =
      x + self_attention(frame, layer,
                         layer_norm(pass, x, layer.at("norm1.weight"), layer.at("norm1.bias")));
  const Tensor normed = layer_norm(pass, middle, layer.at("norm2.weight"), layer.at("norm2.bias"));
  const Tensor inner =
      at::gelu(column_linear(pass, normed, layer.at("fc1.weight"), layer.at("fc1.bias")));
  return middle + row_linear(pass, inner, layer.at("fc2.weight"), layer.at("fc2.bias"));
}

Tensor decoder_block(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Pass& pass = frame.pass;
  const Tensor middle =
      x + self_attention(frame, layer, rms_norm(pass, x, layer.at("norm1.weight")));
  const Tensor normed = rms_norm(pass, middle, layer.at("norm2.weight"));
  if (frame.module.experts > 0) return middle + experts(frame, layer, normed);
  const Tensor inner = swiglu(column_linear(pass, normed, layer.at("gate_up.weight"), nullptr));
  return middle + row_linear(pass, inner, layer.at("down.weight"), nullptr);
}

// The rows of x with a label, and how the output matrix gets those of all ranks.
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
  loss.normed = rms_norm(frame.pass, select_rows(x, rows), head.at("norm.weight"));
  return loss;
}

Tensor head_loss(const Frame& frame, const Layer& head, const Tensor& x) {
  const LossRows rows = loss_rows(frame, head, x);
  return vocabulary_loss(rows.pass, rows.normed, frame.data.labels, frame.data.loss_scale,
                         head.at("output.weight"));
}

Tensor run_kept(const Frame& frame, const Layer& layer, const Tensor& x) {
  switch (layer.kind) {
    case LayerKind::patch_embedding:
      return patch_embedding(frame, layer);
    case LayerKind::encoder_block:
      return vision_block(frame, layer, x);
    case LayerKind::encoder_norm:
      return layer_norm(frame.pass, x, layer.at("norm.weight"), layer.at("norm.bias"));
    case LayerKind::projector_mlp:
      return projector(frame, layer, x);
    case LayerKind::token_embedding:
      return token_embedding(frame, layer);
    case LayerKind::decoder_block:
      return decoder_block(frame, layer, x);
    case LayerKind::language_head:
      return head_loss(frame, layer, x);
    case LayerKind::latent_embedding:
      return latent_embedding(frame, layer);
    case LayerKind::diffusion_block:
      return diffusion_block(frame, layer, x);
    case LayerKind::diffusion_head:
      return diffusion_head(frame, layer, x);
  }
  POLYPHONY_CHECK(false, static_cast<int>(layer.kind));
}

}  // namespace

LocalParameter* Layer::find(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : found->second;
}

LocalParameter* Layer::at(const std::string& name) const {
  LocalParameter* parameter = find(name);
  POLYPHONY_CHECK(parameter != nullptr, "a " << polyphony::name(kind) << " without " << name);
  return parameter;
}

std::int64_t sequence_length(const Module& module, const WorkInput& data) {
  const auto sum = [](const std::vector<std::int64_t>& lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  };
  switch (module.kind) {
    case ModuleKind::vision:
      return sum(data.image_lengths);
    case ModuleKind::projector:
      return sum(data.image_lengths) / (module.merge * module.merge);
    case ModuleKind::language:
      return sum(data.lengths);
    case ModuleKind::diffusion:
      return sum(data.latent_lengths);
    case ModuleKind::audio:
      break;
  }
  POLYPHONY_CHECK(false, "no layers for " << polyphony::name(module.kind));
}

SequencePlan plan_sequences(const Module& module, const WorkInput& data,
                            const torch::TensorOptions& format, InnerGroup& context) {
  switch (module.kind) {
    case ModuleKind::vision:
      return plan_images(data.image_lengths, format.device());
    case ModuleKind::language:
      if (context.size() > 1) {
        SequencePlan plan;
        plan.context = plan_context(data, context, module.head_dim, module.rope_theta,
                                    c10::typeMetaToScalarType(format.dtype()));
        return plan;
      }
      return plan_samples(data.lengths, data.positions, module.head_dim, module.rope_theta,
                          c10::typeMetaToScalarType(format.dtype()));
    case ModuleKind::diffusion:
      return plan_images(data.latent_lengths, format.device());
    case ModuleKind::projector:
      return {};
    case ModuleKind::audio:
      break;
  }
  POLYPHONY_CHECK(false, "no layers for " << polyphony::name(module.kind));
}

Tensor run_layer(const Frame& frame, const Layer& layer, const Tensor& x) {
  if (layer.recompute != Recompute::full) return run_kept(frame, layer, x);
  // What all blocks of a diffusion chunk read is an input, too: its gradient leaves each of them.
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

Tensor predict_layer(const Frame& frame, const Layer& head, const Tensor& x) {
  const LossRows rows = loss_rows(frame, head, x);
  return vocabulary_argmax(rows.pass, rows.normed, head.at("output.weight"));
}

}  // namespace polyphony::exec
