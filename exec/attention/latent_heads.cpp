#include "exec/attention/latent_heads.h"

#include "exec/attention/head_rows.h"

namespace polyphony::exec {

using torch::Tensor;
using Bucket = SequencePlan::Bucket;

namespace {

class LatentHeads : public HeadMaker {
 public:
  explicit LatentHeads(const LatentShape& shape) : shape_(shape) {}

  HeadTensors heads(const std::vector<Tensor>& rows, const Bucket& bucket) const override {
    const auto [heads, plain, rotated, value] = shape_;
    const auto shaped = [&](const Tensor& x, std::int64_t count, std::int64_t width) {
      return pad_rows(x, bucket)
          .view({bucket.count, bucket.longest, count, width})
          .transpose(1, 2);  // [count, heads, L, width]
    };
    const auto turned = [&](const Tensor& x) {
      return bucket.cosine.defined() ? rotate_heads(x.unsqueeze(1), bucket).squeeze(1) : x;
    };
    const Tensor query = shaped(rows[0], heads, plain + rotated);
    const Tensor pair = shaped(rows[1], heads, plain + value);
    const Tensor shared = turned(shaped(rows[2], 1, rotated));
    const auto flat = [&](const Tensor& x) { return x.flatten(0, 1).unsqueeze(1); };
    return {flat(at::cat({query.narrow(3, 0, plain), turned(query.narrow(3, plain, rotated))}, 3)),
            flat(at::cat({pair.narrow(3, 0, plain), shared.expand({-1, heads, -1, -1})}, 3)),
            flat(pair.narrow(3, plain, value).contiguous())};
  }
  HeadShape out() const override { return {shape_.heads, 1, shape_.value}; }

 private:
  LatentShape shape_;
};

}  // namespace

std::shared_ptr<const HeadMaker> latent_heads(const LatentShape& shape) {
  return std::make_shared<LatentHeads>(shape);
}

}  // namespace polyphony::exec
