#include "tests/exec/support/row_plans.h"

#include <algorithm>
#include <stdexcept>

#include "exec/context_parallel/context_attention.h"
#include "exec/context_parallel/head_exchange.h"
#include "exec/frame/sequence_plans.h"
#include "shared/work/row_shares.h"
#include "shared/work/rows.h"

namespace polyphony::exec::testing {
namespace {

constexpr std::int64_t kIndex = 8, kFlag = 1;  // bytes of an int64, of a bool

// A communicator of a group whose collectives are never called.
class Silent : public Communicator {
 public:
  Silent(int size, int index) : size_(size), index_(index) {}
  int index() const override { return index_; }
  int size() const override { return size_; }
  void all_reduce(torch::Tensor&, Reduction) override { refuse(); }
  void all_gather(const torch::Tensor&, torch::Tensor&, const std::vector<std::int64_t>&) override {
    refuse();
  }
  void reduce_scatter(const torch::Tensor&, torch::Tensor&,
                      const std::vector<std::int64_t>&) override {
    refuse();
  }
  void all_to_all(const torch::Tensor&, torch::Tensor&, const std::vector<std::int64_t>&,
                  const std::vector<std::int64_t>&) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("a plan is made without talking"); }
  int size_, index_;
};

std::int64_t bytes_of(const torch::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::int64_t>(tensor.storage().nbytes()) : 0;
}
std::int64_t bytes_of(const SequencePlan::Bucket& bucket) {
  return bytes_of(bucket.padded) + bytes_of(bucket.valid) + bytes_of(bucket.cosine) +
         bytes_of(bucket.sine);
}
std::int64_t bytes_of(const SequencePlan& plan) {
  std::int64_t bytes = bytes_of(plan.order) + bytes_of(plan.inverse);
  for (const SequencePlan::Bucket& bucket : plan.buckets) bytes += bytes_of(bucket);
  if (plan.heads)
    bytes += bytes_of(plan.own) + bytes_of(plan.heads->order()) + bytes_of(plan.heads->inverse());
  if (!plan.context) return bytes;
  return bytes + bytes_of(plan.context->rows) + bytes_of(plan.context->order) +
         bytes_of(plan.context->inverse);
}

struct Chunk {
  const Module& module;
  LayerRange layers;
  const WorkInput& data;
  const ChunkContext& context;
  const Seat& seat;
  bool trains() const { return module.trainable == Trainable::full; }
  bool shares_rows() const { return context.sp && context.tp > 1; }
  torch::TensorOptions format() const {
    return torch::dtype(context.precision == NumberFormat::fp64   ? torch::kFloat64
                        : context.precision == NumberFormat::fp32 ? torch::kFloat32
                                                                  : torch::kBFloat16);
  }
  std::int64_t own(std::int64_t rows) const {
    return shares_rows() ? RowShares{rows, context.tp}.count(seat.tensor) : rows;
  }
};

std::int64_t of_blocks(const Chunk& c) {
  std::vector<InnerCollective> record;
  Silent others(c.context.cp, c.seat.context);
  InnerGroup group(GroupKind::context, c.context.cp > 1 ? &others : nullptr, record);
  std::int64_t bytes =
      bytes_of(plan_sequences(c.module, c.data, c.format(), group, {c.context.cp_attention})) +
      bytes_of(plan_windows(c.module, c.data, c.format(), group, {c.context.cp_attention}));
  if (c.module.experts > 0 && c.module.balance_weight > 0) {
    const auto samples = static_cast<std::int64_t>(c.data.lengths.size());
    bytes += kIndex * (samples + (c.context.cp > 1 ? 0 : c.data.positions.size(-1)));
  }
  return bytes;
}

std::int64_t of_positions(const Chunk& c) {
  if (!c.trains() || c.module.rotary) return 0;
  const std::vector<PatchGrid>& images = c.data.images;
  const int side = c.module.image_size / c.module.patch;
  const bool whole = std::all_of(images.begin(), images.end(), [&](const PatchGrid& grid) {
    return grid == PatchGrid{side, side};
  });
  return c.shares_rows() || !whole ? kIndex * sequence_length(c.module, c.data) : 0;
}

std::int64_t of_patches(const Chunk& c) {
  const bool tokens = c.trains() && c.module.class_token;
  return of_positions(c) + (tokens ? kIndex * c.own(sequence_length(c.module, c.data)) : 0);
}

// Of a part of the vocabulary: positions in it, and whether it has them.
std::int64_t of_ids(const Chunk& c) {
  return c.trains() && c.context.tp > 1 ? (kIndex + kFlag) * c.data.token_ids.numel() : 0;
}

std::int64_t of_times(const Chunk& c) {
  return c.module.kind == ModuleKind::diffusion
             ? size_of(c.context.precision).value * kTimeFeatures *
                   static_cast<std::int64_t>(c.data.times.size())
             : 0;
}

std::int64_t of_layer(const Chunk& c, LayerKind kind) {
  const std::int64_t labels = c.data.labels.defined() ? c.data.labels.numel() : 0;
  switch (kind) {
    case LayerKind::token_embedding: {
      const std::int64_t text = c.data.token_ids.numel();
      const std::int64_t rows = text + c.own(c.data.positions.size(-1) - text);
      const std::int64_t places = c.trains() || c.context.input_grad ? rows : 0;
      return kIndex * places + of_ids(c);
    }
    case LayerKind::patch_embedding:
      return of_patches(c);
    case LayerKind::encoder_norm:
      return c.module.class_token ? kIndex * (sequence_length(c.module, c.data) -
                                              static_cast<std::int64_t>(c.data.images.size()))
                                  : 0;
    case LayerKind::projector_mlp:
    case LayerKind::projector_linear: {
      if (c.module.merge == 1 || c.module.source == ModuleKind::audio) return 0;
      const std::int64_t rows = sequence_length(c.module, c.data) * merged_rows(c.module);
      return kIndex * rows * (c.shares_rows() ? 2 : 1);
    }
    case LayerKind::language_head: {
      std::int64_t bytes = c.context.tp > 1 ? (kIndex + kFlag) * labels : 0;
      if (!c.shares_rows()) return bytes;
      const RowShares shares{c.data.positions.size(-1), c.context.tp};
      const std::int64_t* const row = c.data.loss_rows.const_data_ptr<std::int64_t>();
      std::int64_t own = 0;
      for (std::int64_t i = 0; i < labels; ++i)
        if (row[i] / shares.share() == c.seat.tensor) ++own;
      // What the head saves of its rows (LanguageHead::tape()), beyond an even share of the labels.
      const std::int64_t even = (labels + c.context.tp - 1) / c.context.tp,
                         saved = (c.trains() ? 2 : 1) * size_of(c.context.precision).value *
                                 c.module.hidden;
      return bytes + own * kIndex + (own - even) * saved;
    }
    case LayerKind::encoder_block:
    case LayerKind::decoder_block:
    case LayerKind::diffusion_block:
      return 0;
    case LayerKind::audio_embedding: {  // which rows the second convolution reads
      std::int64_t tokens = 0;
      for (const std::int64_t length : c.data.audio_lengths) tokens += length;
      return c.trains() ? kIndex * 3 * c.own(tokens) : 0;
    }
    case LayerKind::latent_embedding:
    case LayerKind::diffusion_head:
    case LayerKind::abstract_input:  // never run
    case LayerKind::abstract_block:
    case LayerKind::abstract_output:
      return 0;
  }
  return 0;
}

}  // namespace

Bytes row_plan_bytes(const Module& module, LayerRange range, const WorkInput& data,
                     const ChunkContext& context, const Seat& seat) {
  const Chunk c{module, range, data, context, seat};
  const std::vector<LayerKind> stack = layers(module);
  std::int64_t bytes = 0;
  bool blocks = false;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    blocks = blocks || kind == LayerKind::encoder_block || kind == LayerKind::decoder_block ||
             kind == LayerKind::diffusion_block;
    bytes += of_layer(c, kind);
  }
  if (blocks) bytes += of_blocks(c);
  return Bytes(bytes + of_times(c));
}

Bytes weight_plan_bytes(const Module& module, LayerRange range, const WorkInput& data,
                        const ChunkContext& context, const Seat& seat) {
  const Chunk c{module, range, data, context, seat};
  const std::vector<LayerKind> stack = layers(module);
  std::int64_t bytes = 0;
  bool modulates = false;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    if (kind == LayerKind::token_embedding) bytes += of_ids(c);
    if (kind == LayerKind::patch_embedding) bytes += of_positions(c);
    modulates =
        modulates || kind == LayerKind::diffusion_block || kind == LayerKind::diffusion_head;
  }
  return Bytes(bytes + (modulates && c.trains() ? of_times(c) : 0));
}

}  // namespace polyphony::exec::testing
