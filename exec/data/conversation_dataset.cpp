#include "exec/data/conversation_dataset.h"

#include <iostream>

#include "exec/data/decode_image.h"
#include "exec/data/decode_sound.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"

namespace polyphony::exec {
namespace {

// The first images and clips say little about the share of damaged ones.
constexpr std::int64_t kFew = 100;

std::optional<ImageProcessor> processor_of(const Scenario& scenario) {
  const Module* vision = vision_module(scenario.model);
  if (!vision) return {};
  if (vision->channels != 3)
    throw InputError(scenario.file, "/model/" + vision->name + "/channels",
                     std::to_string(vision->channels) + " channels, but images have 3", "write 3");
  return ImageProcessor::of(weights_folder(scenario, *vision), vision->image_size);
}

std::optional<LogMel> log_mel_of(const Scenario& scenario) {
  const Module* audio = audio_module(scenario.model);
  if (!audio) return {};
  return LogMel::of(weights_folder(scenario, *audio), *audio);
}

}  // namespace

ConversationDataset::ConversationDataset(const Scenario& scenario, const std::string& indexes)
    : data_(scenario.data),
      processor_(processor_of(scenario)),
      log_mel_(log_mel_of(scenario)),
      texts_(std::get<ConversationData>(scenario.data.source).tokenizer) {
  const auto& source = std::get<ConversationData>(scenario.data.source);
  most_damaged_ = source.most_left_out;
  training_ = read_conversations(scenario, source.path, indexes);
  data_.samples = training_.samples();
  if (source.held_out.empty()) return;
  held_out_ = read_conversations(scenario, source.held_out, indexes);
  held_out_samples_ = held_out_.samples();
  for (Sample& sample : held_out_samples_)
    sample.id += static_cast<std::uint32_t>(training_.samples().size());
}

Batch ConversationDataset::batch(std::uint64_t step) const { return take_batch(data_, step); }

std::string ConversationDataset::remarks() const {
  const std::string& held_out = held_out_.remarks();
  return training_.remarks() + (training_.remarks().empty() || held_out.empty() ? "" : "\n") +
         held_out;
}

void ConversationDataset::count_damaged(Decoded& kind, const std::string& what) const {
  const std::int64_t damaged = ++kind.damaged, seen = kind.all;
  if (static_cast<double>(damaged) > most_damaged_ * static_cast<double>(std::max(seen, kFew)))
    throw std::runtime_error(what + "; " + std::to_string(damaged) + " of " + std::to_string(seen) +
                             " " + kind.name + "s could not be decoded, more than " +
                             data_.pointer + "/most_left_out");
  std::cerr << "polyphony-worker: " << what << ": the " << kind.name << " is replaced by "
            << kind.instead << "\n";
}

torch::Tensor ConversationDataset::image(const FilePart& file, PatchGrid grid) const {
  ++images_.all;
  try {
    return processor_->process(decode_image(read_part(file), file.path), grid);
  } catch (const InputError& error) {
    count_damaged(images_, error.what());
    constexpr unsigned char kGray = 128;
    return processor_->process({1, 1, std::vector<unsigned char>(3, kGray)}, grid);
  }
}

torch::Tensor ConversationDataset::clip(const FilePart& file, std::int64_t tokens) const {
  ++clips_.all;
  std::vector<float> samples;
  try {
    samples = decode_sound(read_part(file), file.path, log_mel_->longest());
  } catch (const InputError& error) {
    count_damaged(clips_, error.what());
  }
  return log_mel_->features(samples, tokens);
}

SampleContent ConversationDataset::content(const Sample& sample, ContentParts parts) const {
  const std::size_t trained = training_.samples().size();
  const ConversationSamples& from = sample.id < trained ? training_ : held_out_;
  const std::size_t position = sample.id < trained ? sample.id : sample.id - trained;
  SampleContent content;
  if (parts.images && processor_) {
    const std::vector<FilePart> files = from.images(position);
    auto file = files.begin();
    for (const Item& item : sample.items)
      if (item.modality == Modality::image) content.images.push_back(image(*file++, grid_of(item)));
  }
  if (parts.audio && log_mel_) {
    const std::vector<FilePart> files = from.clips(position);
    auto file = files.begin();
    for (const Item& item : sample.items)
      if (item.modality == Modality::audio) content.audio.push_back(clip(*file++, item.tokens));
  }
  if (parts.text) {
    const auto ids = from.ids(position), labels = from.labels(position);
    content.token_ids.assign(ids.begin(), ids.end());
    content.labels.assign(labels.begin(), labels.end());
  }
  return content;
}

}  // namespace polyphony::exec
