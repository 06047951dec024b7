#include "exec/attention/window.h"

#include <algorithm>

#include "exec/on_device.h"

namespace polyphony::exec {

using torch::Tensor;

SequencePlan plan_windows(const std::vector<PatchGrid>& images, std::int64_t window,
                          torch::Device device) {
  std::vector<std::int64_t> rows, lengths;  // window after window
  std::int64_t first = 0;
  for (const PatchGrid& image : images) {
    for (std::int64_t top = 0; top < image.rows; top += window) {
      for (std::int64_t left = 0; left < image.columns; left += window) {
        const std::int64_t below = std::min<std::int64_t>(image.rows, top + window);
        const std::int64_t beside = std::min<std::int64_t>(image.columns, left + window);
        for (std::int64_t row = top; row < below; ++row) {
          for (std::int64_t column = left; column < beside; ++column)
            rows.push_back(first + row * image.columns + column);
        }
        lengths.push_back((below - top) * (beside - left));
      }
    }
    first += image.patches();
  }
  SequencePlan plan = plan_images(lengths, device);
  const Tensor packed = indices_on(rows, device);
  plan.order = plan.order.defined() ? packed.index_select(0, plan.order) : packed;
  plan.inverse =
      at::empty_like(plan.order).index_copy_(0, plan.order, at::arange(first, packed.options()));
  return plan;
}

}  // namespace polyphony::exec
