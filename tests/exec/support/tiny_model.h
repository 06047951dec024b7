// A vision-language model small enough for finite differences, with every awkward shape: A·D ≠ H,
// grouped queries, images of two sizes, samples of unequal length, with and without images and
// labels. Divisible by tp = 1, 2, 4.
#pragma once

#include <memory>
#include <vector>

#include "exec/chunk/chunk.h"
#include "shared/program/program.h"

namespace polyphony::exec::testing {

inline Module tiny_vision() {
  Module m;
  m.name = "vision";
  m.kind = ModuleKind::vision;
  m.layers = 2;
  m.hidden = 12;
  m.heads = m.kv_heads = 4;
  m.head_dim = 4;
  m.ffn = 24;
  m.attention_bias = m.mlp_bias = true;
  m.norm = Norm::layer;
  m.image_size = 8;  // 4 × 4 patches of 2 × 2 pixels
  m.patch = 2;
  return m;
}
inline Module tiny_projector() {
  Module m;
  m.name = "projector";
  m.kind = ModuleKind::projector;
  m.merge = 2;
  m.projector_in = 4 * 12;
  m.projector_hidden = 20;
  m.projector_out = 16;
  return m;
}
inline Module tiny_language() {
  Module m;
  m.name = "language";
  m.kind = ModuleKind::language;
  m.layers = 2;
  m.hidden = 16;
  m.heads = 8;
  m.kv_heads = 4;
  m.head_dim = 6;
  m.ffn = 12;
  m.gated = true;
  m.vocab = 24;
  return m;
}

// A decoder's attention made latent: heads of 6 + 4 numbers, values of 5.
inline void make_latent(Module& m, int query_rank) {
  m.kv_heads = m.heads;
  m.key_value_rank = 10;
  m.query_rank = query_rank;
  m.rotary_dim = 4;
  m.value_dim = 5;
}

// Blocks with windows of 4 rows, a base of rotation of their own and sinks, every third one whole.
inline void make_sliding(Module& m) {
  m.mixers = {Mixer::window, Mixer::window, Mixer::full};
  m.sliding_window = 4;
  m.local_rope_theta = 50;
  m.attention_sinks = true;
}
// Blocks of the delta rule, every second one attention.
inline void make_linear(Module& m) {
  m.mixers = {Mixer::linear, Mixer::full};
  m.linear_key_heads = 4;
  m.linear_value_heads = 8;
  m.linear_head_dim = 6;
  m.linear_conv = 4;
}

// A block of a short convolution before the others, or before one of attention.
inline void make_convolution(Module& m) {
  if (m.mixers.empty()) m.mixers = {Mixer::full};
  m.mixers.insert(m.mixers.begin(), Mixer::convolution);
  m.short_conv = 3;
}

// Attention behind gates, turned in part; norms of what blocks add.
inline void make_gated(Module& m) {
  m.attention_gate = m.post_norms = true;
  m.rotary_dim = 4;
}

struct TestWork {
  WorkInput input;
  WorkSize vision, projector, language;
};
// Per sample: patches of each image, then text tokens, the last `labels` of which carry a label.
struct SampleShape {
  std::vector<std::int64_t> images;
  std::int64_t text = 0;
  std::int64_t labels = 0;
};

inline TestWork make_work(const std::vector<SampleShape>& samples, torch::Dtype dtype, int seed) {
  torch::manual_seed(static_cast<std::uint64_t>(seed));
  TestWork work;
  WorkInput& in = work.input;
  std::vector<std::int64_t> text_rows, image_rows, positions, loss_rows;
  for (const SampleShape& sample : samples) {
    const auto start = static_cast<std::int64_t>(positions.size());
    std::int64_t length = 0;
    for (const std::int64_t patches : sample.images) {
      in.images.push_back(square_grid(patches));
      work.vision.tokens += patches;
      work.vision.pairs += patches * patches;
      work.vision.sequences += 1;
      work.projector.tokens += patches / 4;
      for (std::int64_t i = 0; i < patches / 4; ++i) image_rows.push_back(start + length++);
    }
    for (std::int64_t i = 0; i < sample.text; ++i) {
      if (i >= sample.text - sample.labels) loss_rows.push_back(start + length);
      text_rows.push_back(start + length++);
    }
    for (std::int64_t i = 0; i < length; ++i) positions.push_back(i);
    in.lengths.push_back(length);
    work.language.pairs += length * (length + 1) / 2;
    work.language.sequences += 1;
    work.language.samples += 1;
  }
  work.language.tokens = static_cast<std::int64_t>(positions.size());
  work.language.text_tokens = static_cast<std::int64_t>(text_rows.size());
  work.language.loss_tokens = static_cast<std::int64_t>(loss_rows.size());
  in.patches = torch::rand({work.vision.tokens, 3 * 2 * 2}, dtype).mul_(2).sub_(1);
  in.token_ids = torch::randint(24, {work.language.text_tokens}, torch::kInt64);
  in.text_rows = torch::tensor(text_rows, torch::kInt64);
  in.edge_rows[0] = torch::tensor(image_rows, torch::kInt64);
  in.positions = torch::tensor(positions, torch::kInt64);
  in.loss_rows = torch::tensor(loss_rows, torch::kInt64);
  in.labels = torch::randint(24, {work.language.loss_tokens}, torch::kInt64);
  in.loss_scale = 1.0 / 7;
  return work;
}
inline TestWork uneven_work(torch::Dtype dtype, int seed = 1) {
  return make_work({{{16}, 5, 2}, {{}, 3, 3}, {{4, 16, 16}, 30, 1}, {{16}, 7, 0}}, dtype, seed);
}
inline TestWork text_only_work(torch::Dtype dtype) {
  return make_work({{{}, 5, 2}, {{}, 2, 1}}, dtype, 2);
}
inline TestWork no_label_work(torch::Dtype dtype) { return make_work({{{4}, 3, 0}}, dtype, 3); }

// Chunks that feed one another. Which module trains, and where the boundaries are, is up to the
// test.
struct Stage {
  Module module;
  LayerRange layers;
  ChunkOptions options;
};
inline std::vector<Stage> whole_model(torch::Dtype dtype) {
  ChunkOptions options;
  options.dtype = dtype;
  options.perturb = true;
  ChunkOptions first = options;
  first.input_grad = false;
  return {{tiny_vision(), {0, 4}, first},
          {tiny_projector(), {0, 1}, options},
          {tiny_language(), {0, 4}, options}};
}
inline std::vector<Stage> cut_model(torch::Dtype dtype) {
  const std::vector<Stage> whole = whole_model(dtype);
  std::vector<Stage> cut;
  for (const Stage& stage : whole) {
    for (std::uint16_t i = 0; i < stage.layers.end; ++i) {
      cut.push_back(stage);
      cut.back().layers = {i, static_cast<std::uint16_t>(i + 1)};
      if (i > 0) cut.back().options.input_grad = true;
    }
  }
  return cut;
}

class Chain {
 public:
  Chain(const std::vector<Stage>& stages, Communicator* group)
      : Chain(stages, Communicators{.tensor = group}) {}
  Chain(const std::vector<Stage>& stages, const Communicators& groups) {
    ShardIndex shard;
    if (groups.tensor)
      shard = {.tensor = groups.tensor->size(), .tensor_index = groups.tensor->index()};
    for (const Stage& stage : stages) {
      chunks_.push_back(
          std::make_unique<Chunk>(stage.module, stage.layers, groups, shard, stage.options));
    }
  }
  torch::Tensor forward(std::uint64_t work, const WorkInput& data) {
    torch::Tensor x;
    for (const auto& chunk : chunks_) x = chunk->forward(work, x, data);
    return x;
  }
  void backward(std::uint64_t work) {
    torch::Tensor gradient;
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
      gradient = (*chunk)->backward(work, gradient).front();
  }
  void backward_split(std::uint64_t work) {
    torch::Tensor gradient;
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
      gradient = (*chunk)->backward_input(work, gradient).front();
    }
    for (const auto& chunk : chunks_) chunk->backward_weight(work);
  }
  Chunk& operator[](std::size_t i) { return *chunks_[i]; }
  std::size_t size() const { return chunks_.size(); }
  // All parameters in stack order.
  std::vector<LocalParameter*> parameters() {
    std::vector<LocalParameter*> all;
    for (const auto& chunk : chunks_) {
      for (LocalParameter& parameter : chunk->parameters()) all.push_back(&parameter);
    }
    return all;
  }

 private:
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace polyphony::exec::testing
