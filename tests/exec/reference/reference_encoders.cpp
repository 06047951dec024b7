// Images and audio clips of tests/exec/reference/reference_model.h.
// Sources: ViT, arXiv 2010.11929; rotary positions by row and column: Qwen2-VL, arXiv 2409.12191;
// windows: Qwen2.5-VL, arXiv 2502.13923; Whisper, arXiv 2212.04356.
#include <algorithm>
#include <cmath>

#include "tests/exec/reference/reference_model.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

const auto kWide = torch::TensorOptions(torch::kFloat64);

// Row i and column j of patch p each rotate half of the pairs.
Tensor patch_angle(const Module& m, std::int64_t rows, std::int64_t columns) {
  const std::int64_t quarter = m.head_dim / 4;
  Tensor angle = torch::zeros({rows * columns, 2 * quarter}, kWide);
  for (std::int64_t p = 0; p < rows * columns; ++p) {
    for (std::int64_t i = 0; i < quarter; ++i) {
      const double frequency =
          std::pow(m.rope_theta, -static_cast<double>(i) / static_cast<double>(quarter));
      // Pixtral's columns have the frequencies between those of the rows.
      const double between =
          m.alternating_axes ? std::pow(m.rope_theta, -2.0 / static_cast<double>(m.head_dim)) : 1;
      angle[p][i] = static_cast<double>(p / columns) * frequency;
      angle[p][quarter + i] = static_cast<double>(p % columns) * frequency * between;
    }
  }
  return m.class_token ? torch::cat({torch::zeros({1, 2 * quarter}, kWide), angle}) : angle;
}

Tensor window_mask(std::int64_t patches, std::int64_t columns, std::int64_t window) {
  Tensor mask = torch::zeros({patches, patches}, kWide);
  const auto window_of = [&](std::int64_t p) {
    return std::pair(p / columns / window, p % columns / window);
  };
  for (std::int64_t p = 0; p < patches; ++p)
    for (std::int64_t q = 0; q < patches; ++q)
      if (window_of(p) != window_of(q)) mask[p][q] = -INFINITY;
  return mask;
}

}  // namespace

// image [C, height, width]
Tensor SampleModel::image_rows(const Tensor& image, const Module* projector, int last) {
  const Module& m = *find(ModuleKind::vision);
  const std::string embedding = m.name + ".patch_embedding";
  const std::int64_t rows = image.size(1) / m.patch, columns = image.size(2) / m.patch;
  const std::int64_t patches = rows * columns;
  Tensor x = linear(embedding, image.to(kWide)
                                   .unfold(1, m.patch, m.patch)
                                   .unfold(2, m.patch, m.patch)  // [C, r, c, p, p]
                                   .permute({1, 2, 0, 3, 4})
                                   .reshape({patches, -1}));
  if (m.class_token) x = torch::cat({at(embedding + ".class_token"), x});
  if (!m.rotary) {
    // An image smaller than the table uses the table's upper left corner.
    const Tensor& table = at(embedding + ".position");
    const std::int64_t first = m.class_token ? 1 : 0, table_side = m.image_size / m.patch;
    const Tensor square = table.slice(0, first).view({table_side, table_side, m.hidden});
    x = x +
        torch::cat({table.slice(0, 0, first),
                    square.slice(0, 0, rows).slice(1, 0, columns).reshape({patches, m.hidden})});
  }
  if (m.input_norm) x = norm(m, m.name + ".input_norm", x);
  std::vector<Attend> attend;
  for (int b = 0; b < (last < 0 ? m.layers : last); ++b) {
    const auto& full = m.full_attention_blocks;
    const bool whole = m.window == 0 || std::count(full.begin(), full.end(), b) > 0;
    attend.push_back({whole ? torch::zeros({x.size(0), x.size(0)}, kWide)
                            : window_mask(patches, columns, m.window),
                      m.rotary ? patch_angle(m, rows, columns) : Tensor()});
  }
  x = blocks(m, x, attend);
  if (last < 0 && m.final_norm) x = norm(m, m.name + ".norm", x);
  if (m.class_token) x = x.slice(0, 1);
  if (projector == nullptr) return x;
  const std::int64_t merge = projector->merge;
  return project(*projector, x.view({rows / merge, merge, columns / merge, merge, m.hidden})
                                 .permute({0, 2, 1, 3, 4})
                                 .reshape({patches / (merge * merge), merge * merge * m.hidden}));
}

// [2n, bins]
Tensor SampleModel::clip_rows(const Tensor& frames) {
  const Module& m = *find(ModuleKind::audio);
  const auto convolved = [&](const std::string& name, const Tensor& x, std::int64_t stride) {
    // Columns of the matrix: (frame of the three, channel).
    const Tensor weight = at(name + ".weight").view({m.hidden, 3, x.size(0)}).permute({0, 2, 1});
    return torch::gelu(torch::conv1d(x.unsqueeze(0), weight, at(name + ".bias"), stride, 1)[0]);
  };
  Tensor x = convolved(m.name + ".conv1", frames.to(kWide).t(), 1);  // [H, 2n]
  x = convolved(m.name + ".conv2", x, 2).t();                        // [n, H]
  const std::int64_t tokens = x.size(0), half = m.hidden / 2;
  Tensor position = torch::zeros({tokens, m.hidden}, kWide);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) *
          std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half - 1));
      position[t][i] = std::sin(angle);
      position[t][half + i] = std::cos(angle);
    }
  }
  const Attend all{torch::zeros({tokens, tokens}, kWide), Tensor()};
  x = blocks(m, x + position, std::vector<Attend>(static_cast<std::size_t>(m.layers), all));
  x = norm(m, m.name + ".norm", x);
  const Module* projector = projector_of(ModuleKind::audio);
  return projector ? project(*projector, x.reshape({tokens / projector->merge, -1})) : x;
}

Tensor SampleModel::project(const Module& projector, const Tensor& joined) const {
  if (projector.projector_hidden == 0) return linear(projector.name + ".fc", joined);
  return linear(projector.name + ".fc2", torch::gelu(linear(projector.name + ".fc1", joined)));
}

}  // namespace polyphony::exec::testing
