#include "exec/parameters/init.h"

#include <algorithm>
#include <functional>
#include <thread>

#include "shared/error.h"
#include "shared/random.h"

namespace polyphony::exec {
namespace {

constexpr std::int64_t kLeastPart = 1 << 14;  // elements: about half a millisecond
constexpr double kPerturbation = 0.1;  // far above rounding, far below the values' own scale of 1

// Returns mean + deviation · normal.
struct Law {
  double mean, deviation;
};
Law law_of(const Parameter& parameter, bool perturb) {
  switch (parameter.initial) {
    case Initial::normal:
      return {0, parameter.deviation};
    case Initial::zeros:
      return {0, perturb ? kPerturbation : 0};
    case Initial::ones:
      return {1, perturb ? kPerturbation : 0};
    case Initial::constant:
      return {parameter.constant, perturb ? kPerturbation * parameter.constant : 0};
  }
  POLYPHONY_CHECK(false, parameter.name);
}

// Not at::parallel_for(), which uses one thread in a program that is built without OpenMP.
void on_compute_threads(std::int64_t all,
                        const std::function<void(std::int64_t begin, std::int64_t end)>& part) {
  const std::int64_t threads = std::clamp<std::int64_t>(all / kLeastPart, 1, at::get_num_threads());
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < threads; ++i)
    others.emplace_back(part, all * i / threads, all * (i + 1) / threads);
  part(0, all / threads);
}

}  // namespace

torch::Tensor pretrained_value(const Parameter& parameter, const ShardIndex& shard,
                               torch::Dtype dtype, const PretrainedModule& weights) {
  const char* const format = dtype == torch::kFloat64    ? "F64"
                             : dtype == torch::kBFloat16 ? "BF16"
                                                         : "F32";
  POLYPHONY_CHECK(dtype == torch::kFloat64 || dtype == torch::kBFloat16 || dtype == torch::kFloat32,
                  "weights in " << torch::toString(dtype));
  torch::Tensor value = torch::zeros(parameter.local_shape(shard), dtype);
  weights.read(parameter, shard, format, static_cast<std::byte*>(value.data_ptr()));
  return value;
}

torch::Tensor initial_value(const Parameter& parameter, const ShardIndex& shard, std::uint64_t seed,
                            torch::Dtype dtype, bool perturb) {
  const std::vector<std::int64_t> shape = parameter.local_shape(shard);
  const Law law = law_of(parameter, perturb);
  if (law.deviation == 0) return torch::full(shape, law.mean, dtype);

  const std::uint64_t stream = parameter_seed(seed, parameter.name);
  torch::Tensor value = torch::empty(shape, torch::kFloat64);
  double* out = value.data_ptr<double>();
  // All runs form one range of elements, divided over the compute threads: a billion elements on
  // one thread took 40 s.
  const std::vector<ElementRun> runs = parameter.runs(shard);
  std::vector<std::int64_t> ends;
  std::int64_t all = 0;
  for (const ElementRun& run : runs) ends.push_back(all += run.count);
  on_compute_threads(all, [&](std::int64_t begin, std::int64_t end) {
    auto r =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; ++r) {
      const ElementRun& run = runs[r];
      const std::int64_t stop = std::min(end, ends[r]), first = ends[r] - run.count;
      for (std::int64_t i = begin - first; i < stop - first; ++i) {
        const auto element = static_cast<std::uint64_t>(run.global + i);
        out[run.local + i] = law.mean + law.deviation * random_normal(stream, element);
      }
      begin = stop;
    }
  });
  return value.to(dtype);
}

}  // namespace polyphony::exec
