#include "exec/cuda/cross_entropy.h"

#include "exec/cuda/cross_entropy_body.h"
#include "exec/cuda/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

namespace {

const bool* flags(const Tensor& mine) {
  return mine.defined() ? mine.const_data_ptr<bool>() : nullptr;
}

void check(const Tensor& logits, const Tensor& ids, const Tensor& mine) {
  POLYPHONY_CHECK(logits.is_contiguous() && ids.is_contiguous() &&
                      (!mine.defined() || mine.is_contiguous()) && ids.numel() == logits.size(0),
                  "logits " << logits.sizes() << ", labels " << ids.sizes());
}

}  // namespace

LogitStatistics logit_statistics(const Tensor& logits, const Tensor& ids, const Tensor& mine) {
  check(logits, ids, mine);
  const std::int64_t rows = logits.size(0), width = logits.size(1);
  const auto empty = [&] { return at::empty({rows}, wide_options(logits)); };
  const LogitStatistics out{empty(), empty(), empty()};
  by_format(logits.scalar_type(), [&]<class T>() {
    LogitRows<T> body{};
    body.logits = read<T>(logits);
    body.ids = ids.const_data_ptr<std::int64_t>();
    body.mine = flags(mine);
    body.largest = write<Wide<T>>(out.largest);
    body.sums = write<Wide<T>>(out.sum);
    body.labels = write<Wide<T>>(out.label);
    body.width = width;
    body.aligned = rows_aligned<T>(width) && all_aligned(logits);
    run_rows(body, {rows, packs_of<T>(width), row_blocks(rows, logits.device())}, logits.device());
  });
  return out;
}

void logit_gradient(const Tensor& logits, const Tensor& ids, const Tensor& mine,
                    const Tensor& largest, const Tensor& sum, const Tensor& gradient,
                    double scale) {
  check(logits, ids, mine);
  const std::int64_t width = logits.size(1);
  by_format(logits.scalar_type(), [&]<class T>() {
    const LogitGradient<T> body{.logits = write<T>(logits),
                                .ids = ids.const_data_ptr<std::int64_t>(),
                                .mine = flags(mine),
                                .largest = read<Wide<T>>(largest),
                                .sums = read<Wide<T>>(sum),
                                .gradient = read<Wide<T>>(gradient),
                                .scale = scale,
                                .width = width,
                                .aligned = rows_aligned<T>(width) && all_aligned(logits)};
    run_each(body, logits.size(0) * packs_of<T>(width), logits.device());
  });
}

}  // namespace polyphony::exec::kernels
