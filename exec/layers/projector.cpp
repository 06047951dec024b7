#include "exec/layers/projector.h"

#include <numeric>

#include "exec/on_device.h"
#include "shared/error.h"
#include "shared/work/rows.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// The permutation that makes the patches of each m×m cell consecutive, row by row within the cell,
// and its inverse. Undefined: they already are.
struct CellOrder {
  Tensor index, inverse;  // [P]
};
CellOrder cell_order(const std::vector<PatchGrid>& images, std::int64_t merge,
                     torch::Device device) {
  std::vector<std::int64_t> order;
  std::int64_t first = 0;
  for (const PatchGrid& image : images) {
    POLYPHONY_CHECK(image.rows % merge == 0 && image.columns % merge == 0,
                    image.rows << " × " << image.columns << " patches do not merge by " << merge);
    const std::int64_t in_row = image.columns / merge, cells = image.rows / merge * in_row;
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      for (std::int64_t i = 0; i < merge * merge; ++i) {
        const std::int64_t row = cell / in_row * merge + i / merge;
        order.push_back(first + row * image.columns + cell % in_row * merge + i % merge);
      }
    }
    first += image.patches();
  }
  const Tensor index = indices_on(order, device);
  return {index, at::empty_like(index).index_copy_(0, index, at::arange(first, index.options()))};
}

// The input rows, and how they are merged.
struct Source {
  std::int64_t rows = 0;    // on all ranks
  std::int64_t merged = 1;  // rows that are merged to one
  CellOrder order;
};
Source source_of(const Frame& frame, torch::Device device) {
  const Module& module = frame.module;
  const bool audio = module.source == ModuleKind::audio;
  const std::vector<std::int64_t> lengths =
      audio ? frame.data.audio_lengths : frame.data.image_lengths();
  Source source{
      std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), merged_rows(module), {}};
  if (source.merged == 1) return source;
  if (!audio) source.order = cell_order(frame.data.images, module.merge, device);
  for (const std::int64_t length : lengths)
    POLYPHONY_CHECK(length % source.merged == 0,
                    length << " rows do not merge by " << source.merged);
  return source;
}

Tensor joined(const Source& source, const Tensor& x) {
  POLYPHONY_CHECK(source.rows == x.size(0),
                  source.rows << " rows expected, " << x.size(0) << " received");
  const Tensor& index = source.order.index;
  const Tensor ordered = index.defined() ? permute_rows(x, index, source.order.inverse) : x;
  return ordered.reshape({source.rows / source.merged, source.merged * x.size(1)});
}

std::shared_ptr<const RowExchange> exchange(const Frame& frame, const Source& source) {
  return std::make_shared<MergedRows>(SequenceRows(frame.pass.groups->tensor, source.rows),
                                      source.order.index, source.order.inverse, source.merged);
}

// Applies fc1 to the merged rows.
Tensor inner(const Frame& frame, const Layer& layer, const Tensor& x, const Source& source) {
  LocalParameter *weight = layer.at("fc1.weight"), *bias = layer.at("fc1.bias");
  Pass gathers = frame.pass;
  gathers.pieces = 1;  // rows that are merged must stay together
  if (source.merged == 1) return column_linear(gathers, x, weight, bias);
  if (!frame.own) return column_linear(gathers, joined(source, x), weight, bias);
  gathers.rows = exchange(frame, source);
  return column_linear(gathers, x, weight, bias);
}

// Returns the merged rows to which the single matrix is applied: all, or this rank's own.
Tensor whole_input(const Frame& frame, const Tensor& x, const Source& source) {
  if (source.merged == 1) return x;
  if (!frame.own) return joined(source, x);
  const Tensor all = all_rows(exchange(frame, source), x);
  return all.narrow(0, frame.own->begin(), frame.own->count())
      .clone();  // a copy, so that `all` can be freed
}

}  // namespace

Tensor projector(const Frame& frame, const Layer& layer, const Tensor& x) {
  const Source source = source_of(frame, x.device());
  if (layer.kind == LayerKind::projector_linear)
    return replicated_linear(frame.pass, whole_input(frame, x, source), layer.at("fc.weight"),
                             layer.at("fc.bias"));
  return row_linear(frame.pass, at::gelu(inner(frame, layer, x, source)), layer.at("fc2.weight"),
                    layer.at("fc2.bias"));
}

}  // namespace polyphony::exec
