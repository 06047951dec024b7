// The language module of tests/exec/reference/reference_model.h.
// Sources: Llama 2, arXiv 2307.09288; rotary sections: Qwen2-VL, arXiv 2409.12191.
#include <algorithm>
#include <array>
#include <cmath>

#include "tests/exec/reference/reference_model.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

const auto kWide = torch::TensorOptions(torch::kFloat64);

std::int64_t root(std::int64_t square) {
  std::int64_t side = 0;
  while (side * side < square) ++side;
  return side;
}

}  // namespace

const Module* SampleModel::find(ModuleKind kind) const {
  for (const Module& module : model_.modules)
    if (module.kind == kind) return &module;
  return nullptr;
}
const Module* SampleModel::projector_of(ModuleKind source) const {
  for (const Edge& edge : model_.edges)
    if (edge.from_layer < 0 && model_.modules[edge.from.value].kind == source &&
        model_.modules[edge.to.value].kind == ModuleKind::projector)
      return &model_.modules[edge.to.value];
  return nullptr;
}

std::int64_t SampleModel::sequence_rows(const Item& item) const {
  if (item.modality == Modality::text) return item.tokens;
  if (item.modality == Modality::latent) return 0;
  const bool image = item.modality == Modality::image;
  const Module* projector = projector_of(image ? ModuleKind::vision : ModuleKind::audio);
  const int merge = projector ? projector->merge : 1;
  return item.tokens / (image ? merge * merge : merge);
}

// Items in order: [T, H].
Tensor SampleModel::sequence(const Module& language, const Sample& sample,
                             const SampleContent& content) {
  const Tensor tokens = torch::tensor(content.token_ids, torch::kInt64);
  std::vector<Tensor> parts;
  std::size_t image = 0, clip = 0;
  std::int64_t token = 0;
  for (const Item& item : sample.items) {
    if (item.modality == Modality::image) {
      parts.push_back(image_rows(content.images.at(image++), projector_of(ModuleKind::vision)));
    } else if (item.modality == Modality::audio) {
      parts.push_back(clip_rows(content.audio.at(clip++)));
    } else if (item.modality == Modality::text) {
      parts.push_back((language.scaled_embedding ? std::sqrt(language.hidden) : 1) *
                      torch::embedding(at(language.name + ".embedding.weight"),
                                       tokens.narrow(0, token, item.tokens)));
      token += item.tokens;
    }
  }
  return torch::cat(parts);
}

// Inner features of the images, added at the positions of their tokens before a layer (DeepStack).
Tensor SampleModel::add_features(int layer, const Sample& sample, const SampleContent& content,
                                 Tensor x) {
  for (const Edge& edge : model_.edges) {
    if (edge.to_layer != layer) continue;
    const Module& projector = model_.modules[edge.from.value];
    const auto into = std::find_if(model_.edges.begin(), model_.edges.end(),
                                   [&](const Edge& e) { return e.to == edge.from; });
    std::int64_t row = 0;
    std::size_t image = 0;
    for (const Item& item : sample.items) {
      const std::int64_t rows = sequence_rows(item);
      if (item.modality == Modality::image)
        x = torch::cat({x.narrow(0, 0, row),
                        x.narrow(0, row, rows) +
                            image_rows(content.images.at(image++), &projector, into->from_layer),
                        x.narrow(0, row + rows, x.size(0) - row - rows)});
      row += rows;
    }
  }
  return x;
}

// The frequency of a model whose context was extended (RopeScaling): the wavelength decides, in
// YaRN that of the frequency with index `i` of `width`/2.
static double stretched(const Module& m, bool stretches, double frequency, double i, double width,
                        double base) {
  if (!stretches || m.rope_scaling == RopeScaling::none) return frequency;
  if (m.rope_scaling == RopeScaling::yarn) {
    const auto index = [&](double turns) {
      return width / 2 * std::log(m.rope_context / (turns * 2 * M_PI)) / std::log(base);
    };
    double first = index(m.rope_high_factor), last = index(m.rope_low_factor);
    if (m.rope_whole) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0), last = std::min(last, width - 1);
    const double share = std::clamp((i - first) / (last - first), 0.0, 1.0);
    return frequency * (1 - share) + frequency * share / m.rope_factor;
  }
  const double slow = frequency / m.rope_factor, length = 2 * M_PI / frequency;
  if (m.rope_scaling == RopeScaling::linear || length > m.rope_context / m.rope_low_factor)
    return slow;
  if (length < m.rope_context / m.rope_high_factor) return frequency;
  const double smooth =
      (m.rope_context / length - m.rope_low_factor) / (m.rope_high_factor - m.rope_low_factor);
  return (1 - smooth) * slow + smooth * frequency;
}

// Frequency i rotates by position · theta^(−2i/D), where the position is time, row or column.
Tensor SampleModel::text_angle(const Module& m, const Sample& sample, int width, double base,
                               bool stretches) const {
  std::vector<std::array<double, 3>> places;
  double next = 0;
  for (const Item& item : sample.items) {
    const std::int64_t rows = sequence_rows(item);
    if (item.modality == Modality::image && !m.rope_sections.empty()) {
      const Module* projector = projector_of(ModuleKind::vision);
      const std::int64_t columns =
          item.columns == 0 ? root(rows) : item.columns / (projector ? projector->merge : 1);
      for (std::int64_t i = 0; i < rows; ++i)
        places.push_back({next, next + static_cast<double>(i / columns),
                          next + static_cast<double>(i % columns)});
      next += static_cast<double>(std::max(columns, rows / columns));
      continue;
    }
    for (std::int64_t i = 0; i < rows; ++i, next += 1) places.push_back({next, next, next});
  }
  std::vector<std::size_t> axis(static_cast<std::size_t>(width / 2), 0);  // by frequency
  if (!m.rope_sections.empty()) {
    const auto low = static_cast<std::size_t>(m.rope_sections[0]),
               middle = low + static_cast<std::size_t>(m.rope_sections[1]);
    for (std::size_t i = low; i < axis.size(); ++i) axis[i] = i < middle ? 1 : 2;
  }
  Tensor angle = torch::zeros(
      {static_cast<std::int64_t>(places.size()), static_cast<std::int64_t>(axis.size())}, kWide);
  auto values = angle.accessor<double, 2>();
  for (std::size_t t = 0; t < places.size(); ++t)
    for (std::size_t i = 0; i < axis.size(); ++i)
      values[static_cast<std::int64_t>(t)][static_cast<std::int64_t>(i)] =
          places[t][axis[i]] *
          stretched(m, stretches,
                    std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width)),
                    static_cast<double>(i), width, base);
  return angle;
}

// Describes each row of a sample: index of its item, modality, number of text items that ended
// before it, and whether it is before the first label.
std::vector<SampleModel::RowKind> SampleModel::row_kinds(const Sample& sample) const {
  std::vector<RowKind> rows;
  int number = 0, texts = 0;
  bool unlabelled = true;
  for (const Item& item : sample.items) {
    const std::int64_t count = sequence_rows(item);
    for (std::int64_t i = 0; i < count; ++i) {
      if (item.loss_tokens > 0 && i == count - item.loss_tokens) unlabelled = false;
      rows.push_back({number, item.modality, texts, unlabelled});
    }
    ++number;
    texts += item.modality == Modality::text ? 1 : 0;
  }
  return rows;
}

// Whether row i attends to row k, as shared/model/model.h defines each mask; in a window only rows
// closer than its width.
bool SampleModel::sees(const Module& m, const std::vector<RowKind>& rows, std::int64_t i,
                       std::int64_t k, std::int64_t window) {
  const RowKind &query = rows[static_cast<std::size_t>(i)],
                &key = rows[static_cast<std::size_t>(k)];
  const bool is_text = query.modality == Modality::text;
  if (std::abs(i - k) >= window) return false;
  switch (m.mask) {
    case Mask::causal:
      return k <= i;
    case Mask::isolated:
      return is_text ? k <= i : query.item == key.item;
    case Mask::modality:
      return is_text ? k <= i : query.modality == key.modality;
    case Mask::embedded:
      return k <= i || (!is_text && query.item == key.item);
    case Mask::prefix:
      return k <= i || (query.unlabelled && key.unlabelled);
    case Mask::documents:
      return k <= i && query.document == key.document;
  }
  return false;
}

Attend SampleModel::attend_of(const Module& m, const Sample& sample, int block,
                              std::int64_t tokens) const {
  const bool slides = block_at(m, block).attention == AttentionKind::window;
  const std::vector<RowKind> rows = row_kinds(sample);
  Tensor mask = torch::full({tokens, tokens}, -INFINITY, kWide);
  for (std::int64_t i = 0; i < tokens; ++i)
    for (std::int64_t k = 0; k < tokens; ++k)
      if (sees(m, rows, i, k, slides ? m.sliding_window : tokens)) mask[i][k] = 0;
  const bool own = slides && m.local_rope_theta > 0;
  const bool part = block_at(m, block).attention == AttentionKind::latent ||
                    (m.rotary_dim > 0 && m.key_value_rank == 0);
  const int rotated = part ? m.rotary_dim : m.head_dim;
  return {mask, text_angle(m, sample, rotated, own ? m.local_rope_theta : m.rope_theta, !own),
          own ? 1 : m.rope_attention};
}

Tensor SampleModel::logits(const Sample& sample, const SampleContent& content) {
  balance_ = torch::zeros({}, kWide);
  const Module& m = *find(ModuleKind::language);
  Tensor x = sequence(m, sample, content);
  const std::int64_t tokens = x.size(0);
  for (int b = 0; b < m.layers; ++b)
    x = blocks(m, add_features(b + 1, sample, content, x), {attend_of(m, sample, b, tokens)}, b);
  hidden_ = x;
  std::vector<std::int64_t> rows;  // rows that predict a label
  std::int64_t row = 0;
  for (const Item& item : sample.items) {
    row += sequence_rows(item);
    for (std::int64_t label = item.loss_tokens; label > 0; --label) rows.push_back(row - label);
  }
  const Tensor normed = norm(m, m.name + ".head.norm", x);
  return torch::linear(normed.index_select(0, torch::tensor(rows, torch::kInt64)),
                       at(m.name + (m.tied ? ".embedding.weight" : ".head.output.weight")));
}

}  // namespace polyphony::exec::testing
