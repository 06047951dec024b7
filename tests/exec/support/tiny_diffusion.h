// A diffusion module with every awkward shape: A·D ≠ H, a condition of another width, items that
// are squares and items that are not. Divisible by tp = 1, 2, 4.
#pragma once

#include <memory>
#include <vector>

#include "exec/chunk/chunk.h"
#include "exec/data/latents.h"
#include "shared/program/program.h"
#include "shared/work/row_shares.h"

namespace polyphony::exec::testing {

inline Module tiny_diffusion(int condition = 14) {
  Module m;
  m.name = "diffusion";
  m.kind = ModuleKind::diffusion;
  m.layers = 3;
  m.hidden = 16;
  m.heads = m.kv_heads = 4;
  m.head_dim = 6;
  m.ffn = 20;
  m.attention_bias = true;
  m.patch = 2;
  m.latent_channels = 3;
  m.latent_tokens = 16;
  m.modulation = 10;
  m.condition = condition;
  m.loss_weight = 0.5;
  return m;
}

// Low-rank pairs beside the blocks' linear layers train, nothing else.
inline Module adapted_diffusion() {
  Module module = tiny_diffusion();
  module.trainable = Trainable::lora;
  module.lora_rank = 3;
  module.lora_alpha = 7;
  return module;
}

struct FlowItem {
  std::int64_t tokens = 0, condition_rows = 0;
};
struct FlowWork {
  WorkInput input;
  WorkSize size;
  torch::Tensor conditioning;  // [rows, condition]
};

inline FlowWork flow_work(const Module& module, const std::vector<FlowItem>& items,
                          torch::Dtype dtype, std::uint64_t seed = 1) {
  FlowWork work;
  std::vector<LatentItem> packed;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const auto [tokens, rows] = items[i];
    packed.push_back(
        {{i, 1}, tokens, rows, synthetic_latent(seed, {i, 1}, tokens, latent_width(module))});
    work.size.tokens += tokens;
    work.size.pairs += tokens * tokens;
    work.size.condition += rows;
    work.size.cross_pairs += tokens * rows;
    work.size.sequences += 1;
  }
  pack_latents(work.input, module, packed, {seed, 3}, dtype, true);
  work.input.latent_scale = 1.0 / 700;
  torch::manual_seed(seed);
  work.conditioning = torch::randn({work.size.condition, module.condition}, dtype);
  return work;
}
// Squares, a line, one token, and an item that nothing conditions.
inline FlowWork uneven_flow(const Module& module, torch::Dtype dtype, std::uint64_t seed = 1) {
  return flow_work(module, {{16, 5}, {6, 3}, {1, 7}, {9, 0}, {16, 1}}, dtype, seed);
}

inline ChunkOptions flow_options(torch::Dtype dtype) {
  ChunkOptions options;
  options.dtype = dtype;
  options.perturb = true;  // else every gate is zero, and every gradient behind one
  return options;
}

// Chunks of one diffusion module that feed one another; every one reads the conditioning.
class FlowChain {
 public:
  FlowChain(const Module& module, const std::vector<LayerRange>& cut, const ChunkOptions& options,
            Communicator* group)
      : cut_(cut) {
    ShardIndex shard;
    if (group) shard = {.tensor = group->size(), .tensor_index = group->index()};
    for (const LayerRange& range : cut)
      chunks_.push_back(
          std::make_unique<Chunk>(module, range, Communicators{.tensor = group}, shard, options));
    if (options.sequence_parallel) own_ = group;
  }
  // Of something with a row for each row of an axis, what this rank has between layers.
  torch::Tensor own(const torch::Tensor& whole) const {
    if (!own_) return whole;
    const RowShares shares{whole.size(0), own_->size()};
    return whole.narrow(0, shares.begin(own_->index()), shares.count(own_->index()));
  }
  torch::Tensor forward(std::uint64_t work, const FlowWork& data) {
    torch::Tensor x;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      std::vector<torch::Tensor> inputs = {own(data.conditioning)};
      if (cut_[i].begin > 0) inputs.insert(inputs.begin(), x);
      x = chunks_[i]->forward(work, inputs, data.input);
    }
    return x;
  }
  // The sum of the chunks' gradients of the conditioning; undefined when there are none.
  torch::Tensor backward(std::uint64_t work, bool split = false) {
    torch::Tensor gradient, conditioning;
    for (std::size_t i = chunks_.size(); i-- > 0;) {
      const std::vector<torch::Tensor> back =
          split ? chunks_[i]->backward_input(work, gradient) : chunks_[i]->backward(work, gradient);
      if (cut_[i].begin > 0) gradient = back.front();
      if (back.back().defined())
        conditioning = conditioning.defined() ? conditioning + back.back() : back.back();
    }
    if (split)
      for (const auto& chunk : chunks_) chunk->backward_weight(work);
    return conditioning;
  }
  Chunk& operator[](std::size_t i) { return *chunks_[i]; }
  std::size_t size() const { return chunks_.size(); }
  std::vector<LocalParameter*> parameters() {
    std::vector<LocalParameter*> all;
    for (const auto& chunk : chunks_)
      for (LocalParameter& parameter : chunk->parameters()) all.push_back(&parameter);
    return all;
  }

 private:
  Communicator* own_ = nullptr;  // sequence parallelism
  std::vector<LayerRange> cut_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

inline const std::vector<LayerRange> kWhole = {{0, 5}};
inline const std::vector<LayerRange> kTwo = {{0, 2}, {2, 5}};
inline const std::vector<LayerRange> kCut = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};

struct FlowResult {
  double loss = 0;
  torch::Tensor conditioning;            // undefined when it is not wanted
  std::vector<torch::Tensor> gradients;  // undefined where nothing trains
};
inline FlowResult run(FlowChain& chain, const FlowWork& work, bool split = false) {
  FlowResult result;
  result.loss = chain.forward(0, work).item<double>();
  result.conditioning = chain.backward(0, split);
  for (const LocalParameter* parameter : chain.parameters())
    result.gradients.push_back(parameter->grad.defined() ? parameter->grad.clone()
                                                         : torch::Tensor());
  return result;
}

}  // namespace polyphony::exec::testing
