#include "shared/scenario/typical_batch.h"

#include "shared/model/data_modules.h"
#include "shared/scenario/image_tokens.h"

namespace polyphony {

Batch batch_of_step(const Scenario& scenario, std::uint64_t step) {
  const Data& data = scenario.data;
  if (const auto* synthetic = std::get_if<SyntheticData>(&data.source)) {
    return draw_batch(*synthetic, data.global_batch, image_grid(scenario.model), data.seed, step);
  }
  if (data.samples.empty())
    throw InputError(scenario.file, "/data/source",
                     "the samples of the data set have not been read",
                     "call load_samples() after reading the scenario");
  return take_batch(data, step);
}

Batch typical_batch(const Scenario& scenario) { return batch_of_step(scenario, 0); }

}  // namespace polyphony
