#include "exec/parameters/init.h"

#include "shared/error.h"
#include "shared/random.h"

namespace polyphony::exec {
namespace {

constexpr double kPerturbation = 0.1;  // far above rounding, far below the values' own scale of 1

// mean + deviation · normal.
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
  }
  POLYPHONY_CHECK(false, parameter.name);
}

}  // namespace

torch::Tensor initial_value(const Parameter& parameter, const ShardIndex& shard, std::uint64_t seed,
                            torch::Dtype dtype, bool perturb) {
  const std::vector<std::int64_t> shape = parameter.local_shape(shard);
  const Law law = law_of(parameter, perturb);
  if (law.deviation == 0) return torch::full(shape, law.mean, dtype);

  const std::uint64_t stream = parameter_seed(seed, parameter.name);
  torch::Tensor value = torch::empty(shape, torch::kFloat64);
  double* out = value.data_ptr<double>();
  for (const ElementRun& run : parameter.runs(shard)) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const auto element = static_cast<std::uint64_t>(run.global + i);
      out[run.local + i] = law.mean + law.deviation * random_normal(stream, element);
    }
  }
  return value.to(dtype);
}

}  // namespace polyphony::exec
