#include "exec/fused/cross_entropy.h"

#include "exec/cuda/cross_entropy_body.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

namespace {

// Checks the arguments: they must be contiguous; `mine` may be undefined.
struct Labels {
  Tensor ids, mine;
  Labels(const Tensor& logits, const Tensor& ids_, const Tensor& mine_)
      : ids(ids_.contiguous()), mine(mine_.defined() ? mine_.contiguous() : mine_) {
    POLYPHONY_CHECK(logits.is_contiguous() && ids.numel() == logits.size(0) &&
                        (!mine.defined() || mine.numel() == ids.numel()),
                    "logits " << logits.sizes() << ", labels " << ids.sizes());
  }
  const std::int64_t* places() const { return ids.const_data_ptr<std::int64_t>(); }
  const bool* flags() const { return mine.defined() ? mine.const_data_ptr<bool>() : nullptr; }
};

}  // namespace

LogitStatistics logit_statistics(const Tensor& logits, const Tensor& ids, const Tensor& mine) {
  const Labels labels(logits, ids, mine);
  const std::int64_t rows = logits.size(0), width = logits.size(1);
  const auto empty = [&] { return at::empty({rows}, wide_options(logits)); };
  const LogitStatistics out{empty(), empty(), empty()};
  by_format(logits.scalar_type(), [&]<class T>() {
    LogitRows<T> body{};
    body.logits = read<T>(logits);
    body.ids = labels.places();
    body.mine = labels.flags();
    body.largest = write<Wide<T>>(out.largest);
    body.sums = write<Wide<T>>(out.sum);
    body.labels = write<Wide<T>>(out.label);
    body.width = width;
    body.aligned = rows_aligned<T>(width) && all_aligned(logits);
    run_rows(body, rows_of<T>(rows, width, logits.device()), logits.device());
  });
  return out;
}

void logit_gradient(const Tensor& logits, const Tensor& ids, const Tensor& mine,
                    const Tensor& largest, const Tensor& sum, const Tensor& gradient,
                    double scale) {
  const Labels labels(logits, ids, mine);
  const std::int64_t width = logits.size(1);
  by_format(logits.scalar_type(), [&]<class T>() {
    const LogitGradient<T> body{.logits = write<T>(logits),
                                .ids = labels.places(),
                                .mine = labels.flags(),
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
