#include "exec/data/conversation_dataset.h"

#include <iostream>

#include "exec/data/decode_image.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"

namespace polyphony::exec {
namespace {

// The first images say little about the share of damaged ones.
constexpr std::int64_t kFewImages = 100;

std::optional<ImageProcessor> processor_of(const Scenario& scenario) {
  const Module* vision = vision_module(scenario.model);
  if (!vision) return {};
  if (vision->channels != 3)
    throw InputError(scenario.file, "/model/" + vision->name + "/channels",
                     std::to_string(vision->channels) + " channels, but images have 3", "write 3");
  const auto m = static_cast<std::size_t>(vision - scenario.model.modules.data());
  return ImageProcessor::of(m < scenario.weights.size() ? scenario.weights[m].folder : "",
                            vision->image_size);
}

}  // namespace

ConversationDataset::ConversationDataset(const Scenario& scenario)
    : data_(scenario.data), processor_(processor_of(scenario)) {
  const auto& source = std::get<ConversationData>(scenario.data.source);
  most_damaged_ = source.most_left_out;
  training_ = read_conversations(scenario, source.path);
  if (source.held_out.empty()) return;
  held_out_ = read_conversations(scenario, source.held_out);
  held_out_samples_ = held_out_.samples();
  for (Sample& sample : held_out_samples_)
    sample.id += static_cast<std::uint32_t>(training_.samples().size());
}

Batch ConversationDataset::batch(std::uint64_t step) const {
  return take_batch(training_.samples(), data_, step);
}

std::string ConversationDataset::remarks() const {
  const std::string& held_out = held_out_.remarks();
  return training_.remarks() + (training_.remarks().empty() || held_out.empty() ? "" : "\n") +
         held_out;
}

torch::Tensor ConversationDataset::gray_instead(const std::string& what) const {
  const std::int64_t damaged = ++damaged_, seen = decoded_;
  if (static_cast<double>(damaged) >
      most_damaged_ * static_cast<double>(std::max(seen, kFewImages)))
    throw std::runtime_error(what + "; " + std::to_string(damaged) + " of " + std::to_string(seen) +
                             " images could not be decoded, more than /data/source/most_left_out");
  std::cerr << "polyphony-worker: " << what << ": the image is replaced by a gray one\n";
  constexpr unsigned char kGray = 128;
  return processor_->process({1, 1, std::vector<unsigned char>(3, kGray)});
}

torch::Tensor ConversationDataset::image(const FilePart& file) const {
  ++decoded_;
  try {
    return processor_->process(decode_image(read_part(file), file.path));
  } catch (const InputError& error) {
    return gray_instead(error.what());
  }
}

SampleContent ConversationDataset::content(const Sample& sample, ContentParts parts) const {
  const std::size_t trained = training_.samples().size();
  const ConversationSamples& from = sample.id < trained ? training_ : held_out_;
  const std::size_t position = sample.id < trained ? sample.id : sample.id - trained;
  SampleContent content;
  if (parts.images && processor_)
    for (const FilePart& file : from.images(position)) content.images.push_back(image(file));
  if (parts.text) {
    const auto ids = from.ids(position), labels = from.labels(position);
    content.token_ids.assign(ids.begin(), ids.end());
    content.labels.assign(labels.begin(), labels.end());
  }
  return content;
}

}  // namespace polyphony::exec
