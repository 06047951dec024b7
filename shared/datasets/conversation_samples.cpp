#include "shared/datasets/conversation_samples.h"

#include <algorithm>
#include <map>
#include <optional>

#include "shared/datasets/chat_template.h"
#include "shared/datasets/clip_tokens.h"
#include "shared/datasets/found.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

// Counts the samples that are skipped, by reason, with the first one's name. Those that are too
// long are skipped because the scenario says so; all others are damaged.
class LeftOut {
 public:
  void add(const std::string& name, const std::string& why) {
    add_too_long(name, why);
    ++damaged_;
  }
  void add_too_long(const std::string& name, const std::string& why) {
    Reason& reason = reasons_[why];
    if (reason.count++ == 0) reason.first = name;
    ++all_;
  }
  std::int64_t all() const { return all_; }
  std::int64_t damaged() const { return damaged_; }
  std::string text() const {
    std::string list;
    for (const auto& [why, reason] : reasons_)
      list += (list.empty() ? "" : "; ") + std::to_string(reason.count) + ": " + why +
              " (first: " + reason.first + ")";
    return list;
  }

 private:
  struct Reason {
    std::int64_t count = 0;
    std::string first;
  };
  std::map<std::string, Reason> reasons_;
  std::int64_t all_ = 0, damaged_ = 0;
};

template <class T>
std::span<const T> part(const std::vector<T>& all, const std::vector<std::size_t>& begin,
                        std::size_t sample) {
  return {all.data() + begin[sample], all.data() + begin[sample + 1]};
}

}  // namespace

std::span<const std::int32_t> ConversationSamples::ids(std::size_t sample) const {
  return part(ids_, id_begin_, sample);
}
std::span<const std::int32_t> ConversationSamples::labels(std::size_t sample) const {
  return part(labels_, label_begin_, sample);
}
std::span<const FilePart> ConversationSamples::images(std::size_t sample) const {
  return part(images_, image_begin_, sample);
}
std::span<const FilePart> ConversationSamples::clips(std::size_t sample) const {
  return part(clips_, clip_begin_, sample);
}

void check_vocabulary(const Scenario& scenario, const Tokenizer& tokenizer,
                      const std::string& file) {
  const std::int32_t vocab = scenario.model.modules[language_module(scenario.model).value].vocab;
  if (tokenizer.vocabulary_size() > vocab)
    throw InputError(file, "",
                     "has " + std::to_string(tokenizer.vocabulary_size()) +
                         " ids, but the language module's vocabulary has " + std::to_string(vocab),
                     "use the tokenizer of the model");
}

ConversationSamples read_conversations(const Scenario& scenario, const std::string& path,
                                       const std::function<void(double)>& progress) {
  const auto& source = std::get<ConversationData>(scenario.data.source);
  const Tokenizer tokenizer = Tokenizer::load(source.tokenizer);
  check_vocabulary(scenario, tokenizer, source.tokenizer);
  std::string eos;
  std::vector<std::int32_t> front;
  if (writes_eos(source.chat)) {
    eos = eos_token_beside(source.tokenizer);
    if (eos.empty())
      throw InputError(source.tokenizer, "",
                       "has no tokenizer_config.json beside it that names the eos_token, which the "
                       "template \"" +
                           std::string(name(source.chat)) + "\" writes",
                       "put the model's tokenizer_config.json there, or use another template");
    front = tokenizer.encode("", true);
    front.resize(std::min<std::size_t>(front.size(), 1));
  }
  const Module* vision = vision_module(scenario.model);
  SampleShape shape;
  if (vision) {
    shape.patches = patches_of(*vision);
    shape.image_rows = language_rows(scenario.model, Item{Modality::image, shape.patches, 0});
  }
  const Module* audio = audio_module(scenario.model);
  shape.audio = audio != nullptr;
  if (source.too_long == TooLong::cut) shape.most = scenario.data.sequence;

  ConversationSamples result;
  LeftOut left_out;
  std::int64_t visited = 0, cut = 0, clips_cut = 0;
  const auto visit = [&](Found found) {
    ++visited;
    SampleMedia media{.images = found.pictures.size()};
    if (shape.audio)
      for (const FoundSound& sound : found.sounds) {
        const std::int32_t tokens = clip_tokens(scenario.model, sound.length).tokens;
        media.clips.push_back(
            {tokens, language_rows(scenario.model, Item{Modality::audio, tokens, 0})});
      }
    if (shape.patches > 0 &&
        std::any_of(found.pictures.begin(), found.pictures.end(),
                    [](const FoundPicture& picture) { return !picture.size.decoded; })) {
      left_out.add(found.name, "has an image that is not PNG, JPEG or WebP");
      return true;
    }
    // Returns whether there are no more marks than images and clips.
    const auto has_all = [&](std::size_t images, std::size_t clips) {
      if (images > found.pictures.size())
        left_out.add(found.name, "has more <image> marks than images");
      else if (clips > found.sounds.size())
        left_out.add(found.name, "has more <audio> marks than audio clips");
      else
        return true;
      return false;
    };
    if (!has_all(found.conversation.marks(kImageMark), found.conversation.marks(kAudioMark)))
      return true;
    std::optional<EncodedConversation> encoded;
    try {
      encoded =
          encode_conversation(found.conversation, media, source, tokenizer, eos, front, shape);
    } catch (const InputError& error) {
      left_out.add(found.name, "text " + error.what_is_wrong);
      return true;
    }
    // Marks of the system message, or made of what was removed.
    if (!has_all(encoded->images, encoded->clips)) return true;
    Sample sample{static_cast<std::uint32_t>(result.samples_.size()), std::move(encoded->items)};
    if (sample.items.empty()) {
      if (encoded->cut)
        left_out.add_too_long(found.name, "has no answer within /data/sequence");
      else
        left_out.add(found.name, "has no answer");
      return true;
    }
    const std::int64_t rows = language_rows(scenario.model, sample);
    if (scenario.data.sequence > 0 && rows > scenario.data.sequence) {
      left_out.add_too_long(found.name, "is longer than /data/sequence");
      return true;
    }
    cut += encoded->cut ? 1 : 0;
    result.samples_.push_back(std::move(sample));
    const auto append = [](auto& all, const auto& more, std::vector<std::size_t>& begin) {
      all.insert(all.end(), more.begin(), more.end());
      begin.push_back(all.size());
    };
    append(result.ids_, encoded->ids, result.id_begin_);
    append(result.labels_, encoded->labels, result.label_begin_);
    for (std::size_t i = 0; i < encoded->images; ++i)
      result.images_.push_back(std::move(found.pictures[i].file));
    result.image_begin_.push_back(result.images_.size());
    for (std::size_t i = 0; i < encoded->clips; ++i) {
      clips_cut += clip_tokens(scenario.model, found.sounds[i].length).cut ? 1 : 0;
      result.clips_.push_back(std::move(found.sounds[i].file));
    }
    result.clip_begin_.push_back(result.clips_.size());
    return true;
  };
  find_samples(path, {.pictures = source.images,
                      .visit = visit,
                      .leave_out =
                          [&](const std::string& name, const std::string& why) {
                            ++visited;
                            left_out.add(name, why);
                          },
                      .progress = progress ? progress : [](double) {}});
  const std::string skipped = std::to_string(left_out.all()) + " of " + std::to_string(visited) +
                              " samples are skipped: " + left_out.text();
  if (result.samples_.empty())
    throw InputError(path, "", visited == 0 ? "has no samples" : "has no usable sample; " + skipped,
                     "polyphony scan --help lists the kinds of data sets");
  if (static_cast<double>(left_out.damaged()) > source.most_left_out * static_cast<double>(visited))
    throw InputError(path, "", skipped,
                     "repair the data set, or allow a larger share by " + scenario.data.pointer +
                         "/most_left_out in " + scenario.file);
  const auto remark = [&](std::int64_t count, const std::string& text) {
    if (count > 0) result.remarks_ += (result.remarks_.empty() ? path + ": " : "; ") + text;
  };
  remark(left_out.all(), skipped);
  remark(cut,
         std::to_string(cut) + " are cut at " + std::to_string(scenario.data.sequence) + " tokens");
  remark(clips_cut, "audio clips cut at " + std::to_string(audio ? audio->audio_tokens : 0) +
                        " tokens: " + std::to_string(clips_cut));
  return result;
}

}  // namespace polyphony
