// A file of token ids (TokenData of shared/data/data.h): content for language modules. Ids are
// read from the file when a step needs them, and checked then. Ids of held-out samples, those of
// a second file, follow those of the training samples.
#pragma once

#include <optional>

#include "exec/data/dataset.h"
#include "shared/datasets/token_file.h"

namespace polyphony::exec {

class TokenDataset : public Dataset {
 public:
  // Throws InputError as TokenFile does.
  explicit TokenDataset(const Scenario& scenario);
  Batch batch(std::uint64_t step) const override { return take_batch(data_, step); }
  SampleList training() const override { return data_.samples; }
  std::vector<Sample> held_out() const override { return held_out_samples_; }
  // Throws InputError that names file and position if an id is not in the vocabulary.
  SampleContent content(const Sample& sample, ContentParts parts) const override;

 private:
  Data data_;
  std::int64_t vocabulary_;
  std::optional<TokenFile> training_, held_out_;
  std::vector<Sample> held_out_samples_;
};

}  // namespace polyphony::exec
