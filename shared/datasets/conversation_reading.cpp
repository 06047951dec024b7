#include "shared/datasets/conversation_reading.h"

#include <algorithm>
#include <thread>

#include "shared/datasets/chat_template.h"
#include "shared/datasets/clip_tokens.h"
#include "shared/datasets/image_settings.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

SampleShape shape_of(const Scenario& scenario, const ConversationData& source) {
  SampleShape shape;
  shape.images = vision_module(scenario.model) != nullptr;
  shape.audio = audio_module(scenario.model) != nullptr;
  if (source.too_long == TooLong::cut) shape.most = scenario.data.sequence;
  return shape;
}

}  // namespace

ConversationReading::Marks ConversationReading::marks_of(const ConversationData& source,
                                                         const Tokenizer& tokenizer) {
  for (const std::string& mark : polyphony::marks_of(source.chat))
    if (!tokenizer.token_id(mark))
      throw InputError(source.tokenizer, "",
                       "has no token \"" + mark + "\", which the template \"" +
                           std::string(name(source.chat)) + "\" writes: the model does not know it",
                       "name the template that the model was trained with, or \"plain\", in "
                       "/data/source/template");
  Marks marks;
  if (!writes_eos(source.chat)) return marks;
  marks.eos = eos_token_beside(source.tokenizer);
  if (marks.eos.empty())
    throw InputError(source.tokenizer, "",
                     "has no tokenizer_config.json beside it that names the eos_token, which the "
                     "template \"" +
                         std::string(name(source.chat)) + "\" writes",
                     "put the model's tokenizer_config.json there, or use another template");
  marks.front = tokenizer.encode("", true);
  marks.front.resize(std::min<std::size_t>(marks.front.size(), 1));
  return marks;
}

ConversationReading::ConversationReading(const Scenario& scenario, const std::string& path,
                                         IndexWriter* index)
    : scenario_(scenario),
      source_(std::get<ConversationData>(scenario.data.source)),
      path_(path),
      index_(index),
      tokenizer_(Tokenizer::load(source_.tokenizer)) {
  check_vocabulary(scenario, tokenizer_, source_.tokenizer);
  marks_ = marks_of(source_, tokenizer_);
  shape_ = shape_of(scenario, source_);
  native_ = native_images(scenario);
}

ConversationSamples ConversationReading::read() {
  find_samples(path_, {.pictures = source_.images,
                       .visit =
                           [this](Found found) {
                             take({std::move(found), {}, {}});
                             return true;
                           },
                       .leave_out =
                           [this](const std::string& name, const std::string& why) {
                             take({Found{name, {}, {}, {}}, {}, why});
                           },
                       .progress = [](double) {}});
  encode_group();
  while (!encoding_.empty()) add_oldest();
  check_left_out();
  set_remarks();
  return std::move(result_);
}

// Threads encode groups of samples while the next ones are found. A group takes milliseconds.
void ConversationReading::take(Read read) {
  constexpr std::size_t kGroup = 64;
  group_.push_back(std::move(read));
  if (group_.size() == kGroup) encode_group();
}

void ConversationReading::encode_group() {
  // Each thread needs up to 25 MB (tokenizer.h).
  constexpr unsigned kMostThreads = 4;
  const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
  if (encoding_.size() == threads) add_oldest();
  encoding_.push_back(std::async(std::launch::async, [this, group = std::move(group_)]() mutable {
    for (Read& read : group)
      if (read.why.empty()) encode(read);
    return std::move(group);
  }));
  group_.clear();
}

void ConversationReading::add_oldest() {
  for (const Read& read : encoding_.front().get()) {
    ++visited_;
    if (read.why.empty())
      add(read);
    else if (read.too_long)
      left_out_.add_too_long(read.found.name, read.why);
    else
      left_out_.add(read.found.name, read.why);
  }
  encoding_.pop_front();
}

// Returns what a sample has too little of for its marks; empty: nothing.
std::string ConversationReading::lacks(const Found& found, std::size_t images,
                                       std::size_t clips) const {
  if (images > found.pictures.size()) return "has more <image> marks than images";
  if (clips > found.sounds.size()) return "has more <audio> marks than audio clips";
  return "";
}

std::string ConversationReading::refused_image(const Found& found) const {
  if (!shape_.images) return "";
  for (const FoundPicture& picture : found.pictures) {
    if (!picture.size.decoded) return "has an image that is not PNG, JPEG or WebP";
    if (!image_of(picture.size)) return kTooLongPicture;
  }
  return "";
}

std::optional<Item> ConversationReading::image_of(const PictureSize& size) const {
  if (!native_) return Item{Modality::image, patches_of(*vision_module(scenario_.model)), 0};
  const std::optional<PatchGrid> grid = native_grid(*native_, size.height, size.width);
  return grid ? std::optional(image_item(*grid)) : std::nullopt;
}

SampleMedia ConversationReading::media_of(const Found& found) const {
  SampleMedia media;
  const auto add = [&](std::vector<SampleMedia::Medium>& all, const Item& item) {
    all.push_back({item, language_rows(scenario_.model, item)});
  };
  if (shape_.images)
    for (const FoundPicture& picture : found.pictures)
      add(media.images, image_of(picture.size).value());
  if (shape_.audio)
    for (const FoundSound& sound : found.sounds)
      add(media.clips, {Modality::audio, clip_tokens(scenario_.model, sound.length).tokens, 0});
  return media;
}

// Changes nothing but `read`, which gets its content or a reason to skip it.
void ConversationReading::encode(Read& read) const {
  const Found& found = read.found;
  EncodedConversation& encoded = read.encoded;
  read.why = refused_image(found);
  if (read.why.empty())
    read.why =
        lacks(found, found.conversation.marks(kImageMark), found.conversation.marks(kAudioMark));
  if (!read.why.empty()) return;
  try {
    encoded = encode_conversation(found.conversation, media_of(found), source_, tokenizer_,
                                  marks_.eos, marks_.front, shape_);
  } catch (const InputError& error) {
    read.why = "text " + error.what_is_wrong;
    return;
  }
  // Marks of the system message, or made of what was removed.
  read.why = lacks(found, encoded.images, encoded.clips);
  if (!read.why.empty()) return;
  read.too_long = encoded.items.empty() && encoded.cut;
  if (encoded.items.empty())
    read.why = encoded.cut ? "has no answer within /data/sequence" : "has no answer";
  const std::int64_t most = scenario_.data.sequence;
  if (most == 0 || language_rows(scenario_.model, Sample{0, encoded.items}) <= most) return;
  read.why = "is longer than /data/sequence";
  read.too_long = true;
}

void ConversationReading::add(const Read& read) {
  const EncodedConversation& encoded = read.encoded;
  cut_ += encoded.cut ? 1 : 0;
  images_ += static_cast<std::int64_t>(encoded.images);
  clips_ += static_cast<std::int64_t>(encoded.clips);
  for (std::size_t i = 0; i < encoded.clips; ++i)
    clips_cut_ += clip_tokens(scenario_.model, read.found.sounds[i].length).cut ? 1 : 0;
  add_record(encoded, read.found);
  result_.samples_.push_back({static_cast<std::uint32_t>(result_.samples_.size()), encoded.items});
}

// Successive images are often in the same archive.
MediaPlace ConversationReading::place_of(const FilePart& file) {
  if (result_.paths_.empty() || result_.paths_.back() != file.path)
    result_.paths_.push_back(file.path);
  return {file.offset, file.bytes, static_cast<std::uint32_t>(result_.paths_.size() - 1)};
}

void ConversationReading::add_record(const EncodedConversation& encoded, const Found& found) {
  std::vector<ItemNumbers> items;
  for (const Item& item : encoded.items)
    items.push_back(
        {static_cast<std::int32_t>(item.modality), item.tokens, item.loss_tokens, item.columns});
  std::vector<MediaPlace> images, clips;
  for (std::size_t i = 0; i < encoded.images; ++i)
    images.push_back(place_of(found.pictures[i].file));
  for (std::size_t i = 0; i < encoded.clips; ++i) clips.push_back(place_of(found.sounds[i].file));
  const SampleRecord record{items, encoded.ids, encoded.labels, images, clips};
  if (index_) {
    record_.clear();
    append_record(record, record_);
    index_->add(record_);
  } else {
    result_.begin_.push_back(result_.own_.size());
    append_record(record, result_.own_);
  }
}

void ConversationReading::check_left_out() const {
  if (result_.samples_.empty())
    throw InputError(path_, "",
                     visited_ == 0 ? "has no samples" : "has no usable sample; " + skipped(),
                     "check the data, and the folder /data/source/images; scenarios/TRAINING.md "
                     "lists the kinds of data sets, and the keys of a sample");
  if (static_cast<double>(left_out_.damaged()) >
      source_.most_left_out * static_cast<double>(visited_))
    throw InputError(path_, "", skipped(),
                     "repair the data set, or allow a larger share by " + scenario_.data.pointer +
                         "/most_left_out in " + scenario_.file);
}

void ConversationReading::set_remarks() {
  const auto remark = [&](std::int64_t count, const std::string& text) {
    if (count > 0) result_.remarks_ += (result_.remarks_.empty() ? path_ + ": " : "; ") + text;
  };
  const Module* audio = audio_module(scenario_.model);
  remark(left_out_.all(), skipped());
  if (shape_.images) {
    remark(images_ == 0,
           "no sample has an image, though the model has an encoder of images (a sample names its "
           "own with \"image\" or \"images\")");
    const std::string folder = weights_folder(scenario_, *vision_module(scenario_.model));
    remark(images_ > 0 && !folder.empty() && !image_settings(folder),
           folder +
               " has neither preprocessor_config.json nor processor_config.json: images are scaled "
               "to the module's image_size, with mean 0.5 and deviation 0.5");
  }
  if (shape_.audio)
    remark(clips_ == 0,
           "no sample has a clip of audio, though the model has an encoder of audio (a "
           "sample names its own with \"audio\" or \"audios\")");
  remark(cut_, std::to_string(cut_) + " are cut at " + std::to_string(scenario_.data.sequence) +
                   " tokens");
  remark(clips_cut_, "audio clips cut at " + std::to_string(audio ? audio->audio_tokens : 0) +
                         " tokens: " + std::to_string(clips_cut_));
}

}  // namespace polyphony
