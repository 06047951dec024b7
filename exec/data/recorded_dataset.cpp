#include "exec/data/recorded_dataset.h"

#include "shared/files/whole.h"
#include "shared/scenario_io/data_set.h"

namespace polyphony::exec {
namespace {

Data read_data(Scenario scenario) {
  load_samples(scenario, "",
               [](const std::string& path) { return read_whole(path, kRecords, ""); });
  return scenario.data;
}

}  // namespace

RecordedDataset::RecordedDataset(const Scenario& scenario)
    : data_(read_data(scenario)), content_(scenario) {}

Batch RecordedDataset::batch(std::uint64_t step) const { return take_batch(data_, step); }

}  // namespace polyphony::exec
