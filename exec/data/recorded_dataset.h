// Shapes of real samples, recorded as JSON lines (shared/data/batch_json.h), with synthetic
// content. This reproduces the imbalance of real data without the data. Batches are drawn as from a
// real data set: every epoch is a new permutation (shared/data/data.h). There are no held-out
// samples.
#pragma once

#include "exec/data/dataset.h"
#include "exec/data/synthetic_dataset.h"

namespace polyphony::exec {

class RecordedDataset : public Dataset {
 public:
  // Throws InputError if the file is missing or damaged, or contains a sample that the model cannot
  // take.
  explicit RecordedDataset(const Scenario& scenario);
  Batch batch(std::uint64_t step) const override;
  SampleList training() const override { return data_.samples; }
  std::vector<Sample> held_out() const override { return {}; }
  SampleContent content(const Sample& sample, ContentParts parts) const override {
    return content_(sample, parts);
  }

 private:
  Data data_;
  SyntheticContent content_;
};

}  // namespace polyphony::exec
