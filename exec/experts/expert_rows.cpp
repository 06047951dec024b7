#include "exec/experts/expert_rows.h"

namespace polyphony::exec {

using torch::Tensor;

ExpertRows::ExpertRows(const Tensor& counted, const InnerGroup& group)
    : device_(counted.device()),
      group_(&group),
      coming_(to_host(counted)),
      ends_(counted.cumsum(0).to(torch::kInt32)) {}

const std::vector<std::int64_t>& ExpertRows::counts() const {
  if (coming_) {
    const Tensor here = group_->arrived(*coming_);
    const std::int64_t* const first = here.const_data_ptr<std::int64_t>();
    counts_.assign(first, first + here.numel());
    coming_.reset();
  }
  return counts_;
}

const Tensor& ExpertRows::ends() const {
  if (!ends_.defined())
    ends_ = on_device(torch::tensor(counts_, torch::kInt64).cumsum(0).to(torch::kInt32), device_);
  return ends_;
}

}  // namespace polyphony::exec
