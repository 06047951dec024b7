#include "exec/attention/rotary.h"

#include <algorithm>
#include <cmath>

#include "exec/on_device.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// θ^(−2i/width), i < width/2.
Tensor frequencies(double base, std::int64_t width, torch::Device device) {
  const auto wide = torch::dtype(torch::kFloat64).device(device);
  return at::pow(base, at::arange(0, width, 2, wide).div_(-static_cast<double>(width)));
}

// Returns the share of each frequency i < width/2 that is divided: 0 up to the one that turns
// rope_high_factor times in rope_context rows, 1 from the one that turns rope_low_factor times on.
Tensor divided_share(const Module& module, double base, std::int64_t width, torch::Device device) {
  const auto wide = static_cast<double>(width);
  const auto index = [&](double turns) {
    return wide * std::log(module.rope_context / (turns * 2 * M_PI)) / (2 * std::log(base));
  };
  double first = index(module.rope_high_factor), last = index(module.rope_low_factor);
  if (module.rope_whole) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, wide - 1);
  constexpr double kSteep = 0.001;  // a change between equal indices, as in transformers
  if (first == last) last += kSteep;
  const Tensor all = at::arange(width / 2, torch::dtype(torch::kFloat64).device(device));
  return ((all - first) / (last - first)).clamp(0, 1);
}

// Changes frequencies for a longer context.
Tensor scaled(const Module& module, Tensor frequency, double base) {
  if (module.rope_scaling == RopeScaling::none) return frequency;
  const Tensor slow = frequency / module.rope_factor;
  if (module.rope_scaling == RopeScaling::linear) return slow;
  if (module.rope_scaling == RopeScaling::yarn) {
    const Tensor share = divided_share(module, base, 2 * frequency.size(0), frequency.device());
    return share * slow + (1 - share) * frequency;
  }
  const double low = module.rope_low_factor, high = module.rope_high_factor;
  const Tensor turns = frequency * (module.rope_context / (2 * M_PI));
  const Tensor share = ((turns - low) / (high - low)).clamp(0, 1);  // of the unchanged frequency
  return share * frequency + (1 - share) * slow;
}

}  // namespace

Tensor text_angles(const Module& module, const Tensor& positions, std::int64_t width, double base,
                   bool extended) {
  const Tensor all = frequencies(base, width, positions.device());
  const Tensor frequency = extended ? scaled(module, all, base) : all;
  if (module.rope_sections.empty()) return at::outer(positions.to(torch::kFloat64), frequency);
  POLYPHONY_CHECK(positions.dim() == 2 && positions.size(0) == 3, positions.sizes());
  std::vector<Tensor> parts;
  std::int64_t first = 0;
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    const std::int64_t section = module.rope_sections.at(static_cast<std::size_t>(axis));
    parts.push_back(
        at::outer(positions[axis].to(torch::kFloat64), frequency.narrow(0, first, section)));
    first += section;
  }
  return at::cat(parts, 1);
}

Tensor patch_angles(const Module& module, const std::vector<PatchGrid>& images,
                    torch::Device device) {
  std::vector<double> rows, columns;
  for (const PatchGrid& image : images) {
    if (module.class_token) {
      rows.push_back(0);
      columns.push_back(0);
    }
    for (std::int32_t row = 0; row < image.rows; ++row) {
      for (std::int32_t column = 0; column < image.columns; ++column) {
        rows.push_back(row);
        columns.push_back(column);
      }
    }
  }
  const auto angles = [&](const std::vector<double>& places, const Tensor& frequency) {
    return at::outer(on_device(torch::tensor(places, torch::kFloat64), device), frequency);
  };
  if (module.alternating_axes) {
    const Tensor all = frequencies(module.rope_theta, module.head_dim, device);
    return at::cat({angles(rows, all.slice(0, 0, all.size(0), 2)),
                    angles(columns, all.slice(0, 1, all.size(0), 2))},
                   1);
  }
  const Tensor both = frequencies(module.rope_theta, module.head_dim / 2, device);
  return at::cat({angles(rows, both), angles(columns, both)}, 1);
}

}  // namespace polyphony::exec
