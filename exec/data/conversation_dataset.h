// Conversations about images and audio (ConversationData of shared/data/data.h): text as the ids of
// the model's tokenizer; images decoded when a step needs them and prepared as the vision module's
// preprocessor_config.json says (exec/data/image_processor.h); audio clips decoded then, too, and
// turned into log-mel features (exec/data/log_mel.h).
//
// Training batches are drawn as from every data set: each epoch is a new permutation. Ids of the
// held-out samples follow those of the training samples.
//
// An image whose header was whole but that cannot be decoded becomes gray, such a clip becomes
// silence, and both are counted and named on stderr. More of either kind than the scenario allows
// (most_left_out) end the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "exec/data/dataset.h"
#include "exec/data/image_processor.h"
#include "exec/data/log_mel.h"
#include "exec/data/token_text.h"
#include "shared/datasets/conversation_samples.h"

namespace polyphony::exec {

class ConversationDataset : public Dataset {
 public:
  // `indexes`: as for read_conversations().
  // Throws InputError as read_conversations(), ImageProcessor and LogMel do, and if the vision
  // module does not take three channels.
  explicit ConversationDataset(const Scenario& scenario, const std::string& indexes = {});
  Batch batch(std::uint64_t step) const override;
  SampleList training() const override { return data_.samples; }
  std::vector<Sample> held_out() const override { return held_out_samples_; }
  SampleContent content(const Sample& sample, ContentParts parts) const override;
  std::optional<std::string> text(const Sample&,
                                  const std::vector<std::int64_t>& ids) const override {
    return texts_.of(ids);
  }
  std::string remarks() const override;

 private:
  // How many images or clips were decoded, and how many of them are damaged.
  struct Decoded {
    const char *name, *instead;
    std::atomic<std::int64_t> all{0}, damaged{0};
  };
  torch::Tensor image(const FilePart& file, PatchGrid grid) const;
  torch::Tensor clip(const FilePart& file, std::int64_t tokens) const;
  void count_damaged(Decoded& kind, const std::string& what) const;

  Data data_;
  double most_damaged_;
  std::optional<ImageProcessor> processor_;  // none without a vision module
  std::optional<LogMel> log_mel_;            // none without an audio module
  ConversationSamples training_, held_out_;
  std::vector<Sample> held_out_samples_;
  TokenText texts_;
  mutable Decoded images_{"image", "a gray one"}, clips_{"audio clip", "silence"};
};

}  // namespace polyphony::exec
