// Several data sets, drawn from by weight (MixtureData of shared/data/data.h). Each part is a data
// set of its own kind. Ids number the training samples of all parts, part after part, and then
// their held-out samples.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/data/dataset.h"

namespace polyphony::exec {

class MixtureDataset : public Dataset {
 public:
  // Throws InputError as the data sets of the parts do, or if they have too many samples together.
  // `default_path`: as for open_dataset().
  explicit MixtureDataset(const Scenario& scenario, const std::string& default_path = {});
  Batch batch(std::uint64_t step) const override { return take_batch(data_, step); }
  SampleList training() const override { return data_.samples; }
  std::vector<Sample> held_out() const override { return held_out_; }
  SampleContent content(const Sample& sample, ContentParts parts) const override;
  std::optional<std::string> text(const Sample& sample,
                                  const std::vector<std::int64_t>& ids) const override;
  std::string remarks() const override;

 private:
  struct Part {
    std::unique_ptr<Dataset> dataset;
    std::string pointer;
    std::uint64_t trained = 0;  // number of its training samples
    // Positions of its first training and held-out sample among those of the mixture.
    std::uint64_t first = 0, first_held_out = 0;
  };

  // Returns the part that has the sample, and the sample as it has it.
  std::pair<const Part&, Sample> found(const Sample& sample) const;

  Data data_;
  std::vector<Part> parts_;
  std::vector<Sample> held_out_;
};

}  // namespace polyphony::exec
