#include "exec/layers/audio.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "exec/on_device.h"
#include "shared/chunk/parameters.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Returns the inputs of outputs `made` of a convolution with this stride over clips of `rows`:
// [made, 3·C], the three input rows of each output concatenated. x holds the input rows from
// `first` on.
Tensor three_rows(const Tensor& x, std::int64_t first, const std::vector<std::int64_t>& rows,
                  std::int64_t stride, const Interval& made) {
  const std::int64_t beyond = x.size(0);  // the appended row of zeros
  std::vector<std::int64_t> index;
  std::int64_t start = 0, output = 0;
  for (const std::int64_t count : rows) {
    for (std::int64_t middle = 0; middle < count; middle += stride, ++output) {
      if (output < made.begin || output >= made.end) continue;
      for (std::int64_t row = middle - 1; row <= middle + 1; ++row)
        index.push_back(row < 0 || row >= count ? beyond : start + row - first);
    }
    start += count;
  }
  const Tensor order = indices_on(index, x.device());
  const Tensor padded = at::cat({x, x.new_zeros({1, x.size(1)})});
  return padded.index_select(0, order).view({made.size(), 3 * x.size(1)});
}

Tensor positions_of(const std::vector<std::int64_t>& lengths, const Interval& made,
                    std::int64_t width, const torch::TensorOptions& format) {
  std::int64_t longest = 0, token = 0;
  std::vector<std::int64_t> rows;
  for (const std::int64_t length : lengths) {
    longest = std::max(longest, length);
    for (std::int64_t i = 0; i < length; ++i, ++token)
      if (token >= made.begin && token < made.end) rows.push_back(i);
  }
  const torch::TensorOptions wide = format.dtype(torch::kFloat64);
  const std::int64_t half = width / 2;
  const double step = -std::log(10000.0) / static_cast<double>(std::max<std::int64_t>(1, half - 1));
  const Tensor angle =
      at::outer(at::arange(longest, wide), at::arange(half, wide).mul_(step).exp_());
  return at::cat({angle.sin(), angle.cos()}, 1)
      .to(format.dtype())
      .index_select(0, indices_on(rows, format.device()));
}

// Returns the frames that tokens `made` depend on: two each, and the one before them in the clip.
Interval frames_of(const std::vector<std::int64_t>& lengths, const Interval& made) {
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    if (made.begin > start && made.begin < start + length)
      return {2 * made.begin - 1, 2 * made.end};
    start += length;
  }
  return {2 * made.begin, 2 * made.end};
}

}  // namespace

Tensor audio_embedding(const Frame& frame, const Layer& layer) {
  const std::vector<std::int64_t>& tokens = frame.data.audio_lengths;
  std::vector<std::int64_t> frames;
  for (const std::int64_t count : tokens) frames.push_back(2 * count);
  const std::int64_t all = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  POLYPHONY_CHECK(frame.data.frames.size(0) == 2 * all, frame.data.frames.size(0)
                                                            << " frames for " << all << " tokens");
  Interval made{0, all};
  if (frame.own) made = {frame.own->begin(), frame.own->begin() + frame.own->count()};
  const Interval seen = frames_of(tokens, made);
  const Tensor first =
      at::gelu(replicated_linear(frame.pass, three_rows(frame.data.frames, 0, frames, 1, seen),
                                 layer.at("conv1.weight"), layer.at("conv1.bias")));
  const Tensor second =
      at::gelu(replicated_linear(frame.pass, three_rows(first, seen.begin, frames, 2, made),
                                 layer.at("conv2.weight"), layer.at("conv2.bias")));
  return second + positions_of(tokens, made, second.size(1), second.options());
}

}  // namespace polyphony::exec
