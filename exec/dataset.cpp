#include "exec/dataset.h"

#include "exec/dataset_model.h"
#include "exec/easy_vqa.h"
#include "exec/recorded_dataset.h"
#include "exec/synthetic_dataset.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

// Collects what the samples of a work item need, in order.
class Packer {
 public:
  explicit Packer(const Model& model) : merged_(std::int64_t{merge_of(model)} * merge_of(model)) {
    for (std::size_t e = 0; e < model.edges.size(); ++e)
      if (model.edges[e].to == language_module(model)) image_edge_ = static_cast<int>(e);
  }

  void add(const Sample& sample) {
    std::int64_t length = 0;
    for (const Item& item : sample.items) {
      if (item.modality == Modality::image) {
        image_lengths_.push_back(item.tokens);
        for (std::int64_t i = 0; i < item.tokens / merged_; ++i)
          image_rows_.push_back(begin_ + length++);
      } else {
        for (std::int64_t i = 0; i < item.tokens; ++i) {
          if (i >= item.tokens - item.loss_tokens) loss_rows_.push_back(begin_ + length);
          text_rows_.push_back(begin_ + length++);
        }
      }
    }
    for (std::int64_t i = 0; i < length; ++i) positions_.push_back(i);
    lengths_.push_back(length);
    begin_ += length;
  }

  WorkInput finish() && {
    WorkInput input;
    input.text_rows = torch::tensor(text_rows_, torch::kInt64);
    if (image_edge_ >= 0) input.edge_rows[image_edge_] = torch::tensor(image_rows_, torch::kInt64);
    input.positions = torch::tensor(positions_, torch::kInt64);
    input.loss_rows = torch::tensor(loss_rows_, torch::kInt64);
    input.lengths = std::move(lengths_);
    input.image_lengths = std::move(image_lengths_);
    return input;
  }

 private:
  std::int64_t merged_;     // patches that become one position of the language sequence
  int image_edge_ = -1;     // the model edge that brings image rows to the language module
  std::int64_t begin_ = 0;  // of the next sample
  std::vector<std::int64_t> text_rows_, image_rows_, positions_, loss_rows_, lengths_,
      image_lengths_;
};

// Writes the patches of `image` [channels, size, size] as rows, row-major over the image; features
// (channel, row, column).
void write_patches(const torch::Tensor& image, std::int64_t patch, torch::Tensor rows) {
  const std::int64_t channels = image.size(0), side = image.size(1) / patch;
  POLYPHONY_CHECK(image.size(1) == image.size(2) && side * side == rows.size(0),
                  "an image of " << image.size(1) << " × " << image.size(2) << " pixels for "
                                 << rows.size(0) << " patches of " << patch);
  rows.view({side, side, channels, patch, patch})
      .copy_(image.view({channels, side, patch, side, patch}).permute({1, 3, 0, 2, 4}));
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const Scenario& scenario, const std::string& default_path) {
  if (std::holds_alternative<SyntheticData>(scenario.data.source))
    return std::make_unique<SyntheticDataset>(scenario);
  if (std::holds_alternative<RecordedData>(scenario.data.source))
    return std::make_unique<RecordedDataset>(scenario);
  return std::make_unique<EasyVqa>(scenario, default_path);
}

WorkInput pack_work(const Program& program, WorkId work, const Dataset& dataset, torch::Dtype dtype,
                    bool with_images, bool with_text) {
  const Range range = program.works[work.value].samples;
  std::vector<const Sample*> samples;
  Packer packer(program.model);
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    samples.push_back(&program.batch.samples[program.work_samples[i]]);
    packer.add(*samples.back());
  }
  WorkInput input = std::move(packer).finish();
  input.loss_scale = 1.0 / static_cast<double>(std::max<std::int64_t>(1, program.loss_tokens));

  const Module* vision = vision_module(program.model);
  const bool pixels = with_images && vision;
  if (pixels) {
    std::int64_t patches = 0;
    for (const std::int64_t length : input.image_lengths) patches += length;
    input.patches = torch::empty(
        {patches, std::int64_t{vision->channels} * vision->patch * vision->patch}, dtype);
  }
  if (!pixels && !with_text) return input;
  std::vector<std::int64_t> token_ids, labels;
  std::int64_t row = 0;
  std::size_t image_number = 0;
  for (const Sample* sample : samples) {
    const SampleContent content = dataset.content(*sample, {pixels, with_text});
    if (pixels) {
      for (const torch::Tensor& image : content.images) {
        const std::int64_t patches = input.image_lengths.at(image_number++);
        write_patches(image, vision->patch, input.patches.narrow(0, row, patches));
        row += patches;
      }
    }
    token_ids.insert(token_ids.end(), content.token_ids.begin(), content.token_ids.end());
    labels.insert(labels.end(), content.labels.begin(), content.labels.end());
  }
  POLYPHONY_CHECK(!pixels || row == input.patches.size(0),
                  row << " of " << input.patches.size(0) << " patches filled");
  if (with_text) {
    input.token_ids = torch::tensor(token_ids, torch::kInt64);
    input.labels = torch::tensor(labels, torch::kInt64);
    POLYPHONY_CHECK(input.token_ids.numel() == input.text_rows.numel() &&
                        input.labels.numel() == input.loss_rows.numel(),
                    input.token_ids.numel() << " token ids, " << input.labels.numel()
                                            << " labels for " << input.text_rows.numel() << " and "
                                            << input.loss_rows.numel() << " rows");
  }
  return input;
}

}  // namespace polyphony::exec
