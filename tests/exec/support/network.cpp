#include "tests/exec/support/network.h"

#include "exec/data/positions.h"
#include "shared/error.h"
#include "shared/work/row_shares.h"
#include "shared/work/rows.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

// Pairs of patches in one window.
std::int64_t count_window_pairs(PatchGrid grid, std::int64_t window) {
  const std::int64_t patches = grid.patches(), columns = grid.columns;
  std::int64_t pairs = 0;
  for (std::int64_t p = 0; p < patches && window > 0; ++p)
    for (std::int64_t q = 0; q < patches; ++q)
      pairs += p / columns / window == q / columns / window &&
               p % columns / window == q % columns / window;
  return pairs;
}

// Rows as patches [channels · patch²] of an image [channels, height, width].
Tensor patches_of(const Tensor& image, std::int64_t patch) {
  const std::int64_t patches = image.size(1) / patch * (image.size(2) / patch);
  return image.unfold(1, patch, patch)
      .unfold(2, patch, patch)
      .permute({1, 2, 0, 3, 4})
      .reshape({patches, -1});
}

// Collects what a work holds.
struct Collector {
  const Model& model;
  Packed work{};
  std::vector<std::int64_t> text_rows{}, loss_rows{}, token_ids{}, labels{};
  std::map<int, std::vector<std::int64_t>> edge_rows{};
  std::vector<Tensor> patches{}, frames{}, positions{};
  std::int64_t row = 0;

  WorkSize& size(std::size_t module) { return work.sizes[module]; }
  // An item through its encoder and projector, to the rows that it takes in the sequence.
  void encode(ModuleKind kind, const Item& item) {
    const std::int64_t tokens = item.tokens;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
      if (model.modules[m].kind != kind) continue;
      size(m).tokens += tokens;
      size(m).pairs += tokens * tokens;
      size(m).sequences += 1;
      if (kind == ModuleKind::vision)
        size(m).window_pairs += count_window_pairs(grid_of(item), model.modules[m].window);
      std::size_t source = m;
      std::int64_t rows = tokens;
      for (std::size_t e = 0; e < model.edges.size(); ++e) {  // edges are in topological order
        if (model.edges[e].from.value != source) continue;
        const Module& to = model.modules[model.edges[e].to.value];
        if (to.kind == ModuleKind::projector) {
          source = model.edges[e].to.value;
          rows /= kind == ModuleKind::audio ? to.merge : to.merge * to.merge;
          size(source).tokens += rows;
        } else {
          for (std::int64_t i = 0; i < rows; ++i) edge_rows[static_cast<int>(e)].push_back(row++);
        }
      }
    }
  }
};

}  // namespace

Packed pack(const Model& model, const std::vector<Sample>& samples, const Dataset& dataset,
            torch::Dtype dtype) {
  const std::size_t language = language_module(model).value;
  std::int64_t patch = 0;
  for (const Module& module : model.modules)
    if (module.kind == ModuleKind::vision) patch = module.patch;
  Collector c{model};
  c.work.sizes.resize(model.modules.size());
  WorkInput& input = c.work.input;
  for (std::size_t e = 0; e < model.edges.size(); ++e)
    if (model.edges[e].to.value == language) c.edge_rows[static_cast<int>(e)] = {};
  for (const Sample& sample : samples) {
    const SampleContent content = dataset.content(sample, {});
    const std::int64_t start = c.row;
    std::size_t image = 0, clip = 0;
    for (const Item& item : sample.items) {
      if (item.modality == Modality::image) {
        c.patches.push_back(patches_of(content.images.at(image++), patch));
        input.images.push_back(grid_of(item));
        c.encode(ModuleKind::vision, item);
      } else if (item.modality == Modality::audio) {
        c.frames.push_back(content.audio.at(clip++));
        input.audio_lengths.push_back(item.tokens);
        c.encode(ModuleKind::audio, item);
      } else {
        for (std::int32_t i = 0; i < item.tokens; ++i) {
          if (i >= item.tokens - item.loss_tokens) c.loss_rows.push_back(c.row);
          c.text_rows.push_back(c.row++);
        }
      }
    }
    c.token_ids.insert(c.token_ids.end(), content.token_ids.begin(), content.token_ids.end());
    c.labels.insert(c.labels.end(), content.labels.begin(), content.labels.end());
    c.positions.push_back(rope_positions(model, sample));
    const std::int64_t length = c.row - start;
    input.lengths.push_back(length);
    c.size(language).pairs += length * (length + 1) / 2;
    c.size(language).sequences += 1;
  }
  c.size(language).tokens = c.row;
  c.size(language).text_tokens = static_cast<std::int64_t>(c.text_rows.size());
  c.size(language).loss_tokens = static_cast<std::int64_t>(c.loss_rows.size());
  if (!c.patches.empty()) input.patches = torch::cat(c.patches).to(dtype);
  if (!c.frames.empty()) input.frames = torch::cat(c.frames).to(dtype);
  const auto numbers = [](const std::vector<std::int64_t>& values) {
    return torch::tensor(values, torch::kInt64);
  };
  for (const auto& [edge, rows] : c.edge_rows) input.edge_rows[edge] = numbers(rows);
  input.text_rows = numbers(c.text_rows);
  input.loss_rows = numbers(c.loss_rows);
  input.token_ids = numbers(c.token_ids);
  input.labels = numbers(c.labels);
  input.positions = torch::cat(c.positions, -1);
  input.loss_scale = 1.0 / static_cast<double>(c.loss_rows.size());
  return c.work;
}

Network::Network(const Model& model, Communicator* tensor, const NetworkOptions& options)
    : model_(model), options_(options) {
  ShardIndex shard;
  if (tensor) shard = {.tensor = tensor->size(), .tensor_index = tensor->index()};
  rank_ = shard.tensor_index;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    const auto end = static_cast<std::uint16_t>(layers(module).size());
    std::vector<int> input_edges;
    for (std::size_t e = 0; e < model.edges.size(); ++e)
      if (model.edges[e].to == ModuleId(m)) input_edges.push_back(static_cast<int>(e));
    for (std::uint16_t begin = 0; begin < end; begin = options.cut ? begin + 1 : end) {
      ModuleLayout layout;
      layout.tp = layout.ranks = shard.tensor;
      layout.sp = options.sequence_parallel && shard.tensor > 1;
      const ChunkContext context =
          chunk_context(model, ModuleId(m), begin, layout,
                        options.dtype == torch::kFloat64 ? NumberFormat::fp64 : NumberFormat::fp32);
      ChunkOptions chunk;
      chunk.dtype = options.dtype;
      chunk.seed = options.seed;
      chunk.trainable = context.weight_grad;
      chunk.input_grad = context.input_grad;
      chunk.sequence_parallel = context.sp;
      chunk.input_edges = input_edges;
      chunk.perturb = true;
      const LayerRange range{begin, options.cut ? static_cast<std::uint16_t>(begin + 1) : end};
      parts_.push_back(
          {ModuleId(m), range,
           std::make_unique<Chunk>(module, range, Communicators{.tensor = tensor}, shard, chunk),
           context});
    }
  }
  outputs_.resize(parts_.size());
}

void Network::run(const Part& part, Phase phase, const std::function<void()>& body) const {
  if (watch_)
    watch_(part, phase, body);
  else
    body();
}

std::vector<Tensor> Network::inputs_of(std::size_t part) const {
  if (parts_[part].layers.begin > 0) return {outputs_[part - 1]};
  std::vector<Tensor> inputs;
  for (const Edge& edge : model_.edges) {
    if (edge.to != parts_[part].module) continue;
    std::size_t source = parts_.size();
    for (std::size_t p = 0; p < parts_.size(); ++p)
      if (parts_[p].module == edge.from) source = p;  // its last part
    inputs.push_back(outputs_.at(source));
  }
  return inputs;
}

Tensor Network::forward(const Packed& work) {
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    run(part, Phase::forward,
        [&] { outputs_[p] = part.chunk->forward(0, inputs_of(p), work.input); });
    if (outputs_[p].dim() == 0) continue;  // the loss
    const RowShares shares{rows_leaving(model_.modules[part.module.value], part.layers.end,
                                        work.sizes[part.module.value]),
                           part.context.sp ? part.context.tp : 1};
    const std::int64_t rows = shares.count(part.context.sp ? rank_ : 0);
    POLYPHONY_CHECK(outputs_[p].size(0) == rows,
                    outputs_[p].size(0) << " rows leave part " << p << ", not " << rows);
  }
  return outputs_.back();
}

void Network::backward() {
  std::map<std::size_t, Tensor> gradients;  // by part: of its output
  for (std::size_t p = parts_.size(); p-- > 0;) {
    const Part& part = parts_[p];
    if (!part.context.input_grad && !part.context.weight_grad) continue;
    const Phase phase = options_.split ? Phase::backward_input : Phase::backward;
    std::vector<Tensor> back;
    run(part, phase, [&] {
      back = options_.split ? part.chunk->backward_input(0, gradients[p])
                            : part.chunk->backward(0, gradients[p]);
    });
    if (part.layers.begin > 0) {
      gradients[p - 1] = back.at(0);
      continue;
    }
    std::size_t input = 0;
    for (const Edge& edge : model_.edges) {
      if (edge.to != part.module) continue;
      for (std::size_t q = 0; q < p; ++q)
        if (parts_[q].module == edge.from && (q + 1 == p || parts_[q + 1].module != edge.from))
          gradients[q] = back.at(input);
      ++input;
    }
  }
  if (!options_.split) return;
  for (const Part& part : parts_) {
    if (!part.context.input_grad && !part.context.weight_grad) continue;
    run(part, Phase::backward_weight, [&] { part.chunk->backward_weight(0); });
  }
}

std::map<std::string, Tensor> Network::gradients() const {
  std::map<std::string, Tensor> all;
  for (const Part& part : parts_) {
    for (const LocalParameter& parameter : part.chunk->parameters()) {
      if (!parameter.grad.defined()) continue;
      const auto [entry, fresh] = all.try_emplace(parameter.spec.name, parameter.grad.clone());
      if (!fresh) entry->second += parameter.grad;
    }
  }
  return all;
}

}  // namespace polyphony::exec::testing
