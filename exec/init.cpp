#include "exec/init.h"

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

torch::Tensor initial_value(const Parameter& parameter, int tp, int index, std::uint64_t seed,
                            torch::Dtype dtype, bool perturb) {
  const std::vector<std::int64_t> shape = parameter.local_shape(tp);
  const Law law = law_of(parameter, perturb);
  if (law.deviation == 0) return torch::full(shape, law.mean, dtype);

  const std::int64_t rows = shape[0];
  const std::int64_t columns = shape.size() == 2 ? shape[1] : 1;
  const std::int64_t global_columns = parameter.shape.size() == 2 ? parameter.shape[1] : 1;
  const std::int64_t first_row = parameter.cut == Cut::rows ? index * rows : 0;
  const std::int64_t first_column = parameter.cut == Cut::columns ? index * columns : 0;
  const std::uint64_t stream = parameter_seed(seed, parameter.name);
  torch::Tensor value = torch::empty(shape, torch::kFloat64);
  double* out = value.data_ptr<double>();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t base = (first_row + row) * global_columns + first_column;
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto element = static_cast<std::uint64_t>(base + column);
      *out++ = law.mean + law.deviation * random_normal(stream, element);
    }
  }
  return value.to(dtype);
}

}  // namespace polyphony::exec
