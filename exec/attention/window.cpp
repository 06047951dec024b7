#include "exec/attention/window.h"

#include <algorithm>

#include "exec/on_device.h"
#include "shared/work/rows.h"

namespace polyphony::exec {

using torch::Tensor;

SequencePlan plan_windows(const std::vector<std::int64_t>& image_lengths, std::int64_t window,
                          torch::Device device) {
  std::vector<std::int64_t> rows, lengths;  // window after window
  std::int64_t first = 0;
  for (const std::int64_t patches : image_lengths) {
    const std::int64_t side = square_side(patches);
    for (std::int64_t top = 0; top < side; top += window) {
      for (std::int64_t left = 0; left < side; left += window) {
        const std::int64_t below = std::min(side, top + window);
        const std::int64_t beside = std::min(side, left + window);
        for (std::int64_t row = top; row < below; ++row) {
          for (std::int64_t column = left; column < beside; ++column)
            rows.push_back(first + row * side + column);
        }
        lengths.push_back((below - top) * (beside - left));
      }
    }
    first += patches;
  }
  SequencePlan plan = plan_images(lengths, device);
  const Tensor packed = indices_on(rows, device);
  plan.order = plan.order.defined() ? packed.index_select(0, plan.order) : packed;
  plan.inverse =
      at::empty_like(plan.order).index_copy_(0, plan.order, at::arange(first, packed.options()));
  return plan;
}

}  // namespace polyphony::exec
