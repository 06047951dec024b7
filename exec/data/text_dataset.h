// A text file as tokens (TextData of shared/data/data.h): real content for language modules.
// Batches are drawn as from every data set: each epoch is a new permutation. Ids of the held-out
// samples, those of a second text, follow those of the training samples.
#pragma once

#include <optional>

#include "exec/data/dataset.h"
#include "exec/data/token_text.h"
#include "shared/scenario_io/data_set.h"

namespace polyphony::exec {

class TextDataset : public Dataset {
 public:
  // Throws InputError as text_samples() does.
  explicit TextDataset(const Scenario& scenario);
  Batch batch(std::uint64_t step) const override;
  SampleList training() const override { return data_.samples; }
  std::vector<Sample> held_out() const override { return held_out_.samples; }
  SampleContent content(const Sample& sample, ContentParts parts) const override;
  std::optional<std::string> text(const Sample&,
                                  const std::vector<std::int64_t>& ids) const override {
    return texts_.of(ids);
  }

 private:
  Data data_;
  TextSamples text_, held_out_;
  TokenText texts_;
};

}  // namespace polyphony::exec
