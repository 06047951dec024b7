// Conversations about images (ConversationData of shared/data/data.h): text as the ids of the
// model's tokenizer, images decoded when a step needs them and prepared as the vision module's
// preprocessor_config.json says (exec/data/image_processor.h).
//
// Training batches are drawn as from every data set: each epoch is a new permutation. Ids of the
// held-out samples follow those of the training samples.
//
// An image whose header was whole but that cannot be decoded becomes gray, and is counted and named
// on stderr. More such images than the scenario allows (most_left_out) end the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "exec/data/dataset.h"
#include "exec/data/image_processor.h"
#include "shared/datasets/conversation_samples.h"

namespace polyphony::exec {

class ConversationDataset : public Dataset {
 public:
  // Throws InputError as read_conversations() and ImageProcessor do, and if the vision module does
  // not take three channels.
  explicit ConversationDataset(const Scenario& scenario);
  Batch batch(std::uint64_t step) const override;
  std::vector<Sample> training() const override { return training_.samples(); }
  std::vector<Sample> held_out() const override { return held_out_samples_; }
  SampleContent content(const Sample& sample, ContentParts parts) const override;
  std::string remarks() const override;

 private:
  torch::Tensor image(const FilePart& file) const;
  torch::Tensor gray_instead(const std::string& what) const;

  Data data_;
  double most_damaged_;
  std::optional<ImageProcessor> processor_;  // none without a vision module
  ConversationSamples training_, held_out_;
  std::vector<Sample> held_out_samples_;
  mutable std::atomic<std::int64_t> decoded_{0}, damaged_{0};
};

}  // namespace polyphony::exec
