#include "exec/attention/rotary.h"

#include "exec/on_device.h"
#include "shared/error.h"
#include "shared/work/rows.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// θ^(−2i/width), i < width/2.
Tensor frequencies(double base, std::int64_t width, torch::Device device) {
  const auto wide = torch::dtype(torch::kFloat64).device(device);
  return at::pow(base, at::arange(0, width, 2, wide).div_(-static_cast<double>(width)));
}

}  // namespace

Tensor text_angles(const Module& module, const Tensor& positions, std::int64_t width, double base) {
  const Tensor frequency = frequencies(base, width, positions.device());
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

Tensor patch_angles(const Module& module, const std::vector<std::int64_t>& image_lengths,
                    torch::Device device) {
  std::vector<double> rows, columns;
  for (const std::int64_t patches : image_lengths) {
    if (module.class_token) {
      rows.push_back(0);
      columns.push_back(0);
    }
    const std::int64_t side = square_side(patches);
    for (std::int64_t i = 0; i < patches; ++i) {
      rows.push_back(static_cast<double>(i / side));
      columns.push_back(static_cast<double>(i % side));
    }
  }
  const Tensor frequency = frequencies(module.rope_theta, module.head_dim / 2, device);
  const auto angles = [&](const std::vector<double>& places) {
    return at::outer(on_device(torch::tensor(places, torch::kFloat64), device), frequency);
  };
  return at::cat({angles(rows), angles(columns)}, 1);
}

}  // namespace polyphony::exec
