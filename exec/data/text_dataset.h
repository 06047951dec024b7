// A text file as tokens (TextData of shared/data/data.h): real content for language modules.
// Batches are drawn as from every data set: each epoch is a new permutation. There are no held-out
// samples.
#pragma once

#include "exec/data/dataset.h"
#include "shared/scenario_io/data_set.h"

namespace polyphony::exec {

class TextDataset : public Dataset {
 public:
  // Throws InputError as text_samples() does.
  explicit TextDataset(const Scenario& scenario);
  Batch batch(std::uint64_t step) const override;
  std::vector<Sample> training() const override { return text_.samples; }
  std::vector<Sample> held_out() const override { return {}; }
  SampleContent content(const Sample& sample, ContentParts parts) const override;

 private:
  Data data_;
  TextSamples text_;
};

}  // namespace polyphony::exec
