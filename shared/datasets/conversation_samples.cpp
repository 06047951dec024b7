#include "shared/datasets/conversation_samples.h"

#include <algorithm>
#include <map>
#include <optional>

#include "shared/datasets/chat_template.h"
#include "shared/datasets/found.h"
#include "shared/error.h"
#include "shared/model/data_modules.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

// A text between two images, and where in it (in bytes) what the assistant says begins and ends.
struct TextRun {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> trained;
};

// Returns the texts around the images: one more than there are images.
std::vector<TextRun> split_at_images(const std::vector<RenderedPart>& parts) {
  std::vector<TextRun> runs(1);
  const std::string mark = kImageMark;
  for (const RenderedPart& part : parts)
    for (std::size_t at = 0;;) {
      const std::size_t end = part.text.find(mark, at);
      TextRun& run = runs.back();
      const std::size_t begin = run.text.size();
      run.text += part.text.substr(at, end == std::string::npos ? end : end - at);
      if (part.trained && run.text.size() > begin) run.trained.emplace_back(begin, run.text.size());
      if (end == std::string::npos) break;
      runs.emplace_back();
      at = end + mark.size();
    }
  return runs;
}

// The ids of a run, and which of them the model learns to say.
struct EncodedRun {
  std::vector<std::int32_t> ids;
  std::vector<char> trained;
};

// Returns how many ids the texts begin with in common: where `prefix` ends in `whole`. An id that
// reaches over the end belongs to what follows.
std::size_t common_ids(const std::vector<std::int32_t>& prefix,
                       const std::vector<std::int32_t>& whole) {
  const auto [end, other] = std::mismatch(prefix.begin(), prefix.end(), whole.begin(), whole.end());
  return static_cast<std::size_t>(end - prefix.begin());
}

EncodedRun encode_run(const TextRun& run, const Tokenizer& tokenizer) {
  EncodedRun encoded;
  encoded.ids = tokenizer.encode(run.text);
  encoded.trained.assign(encoded.ids.size(), 0);
  const auto id_at = [&](std::size_t byte) {
    if (byte == run.text.size()) return encoded.ids.size();
    return common_ids(tokenizer.encode(std::string_view(run.text).substr(0, byte)), encoded.ids);
  };
  for (const auto& [begin, end] : run.trained) {
    const std::size_t first = id_at(begin), last = id_at(end);
    for (std::size_t i = first; i < last; ++i) encoded.trained[i] = 1;
  }
  return encoded;
}

// Returns the turns with the system message in front, if they have none, and with a mark for each
// image: those that have none come before the first turn of the user.
std::vector<Turn> with_marks(const Conversation& conversation, std::size_t images,
                             const std::string& system) {
  std::vector<Turn> turns = conversation.turns;
  if (!system.empty() && (turns.empty() || turns.front().speaker != Speaker::system))
    turns.insert(turns.begin(), {Speaker::system, system});
  std::string missing;
  for (std::size_t i = conversation.image_marks(); i < images; ++i) missing += kImageMark;
  if (missing.empty()) return turns;
  const auto user = std::find_if(turns.begin(), turns.end(),
                                 [](const Turn& turn) { return turn.speaker == Speaker::user; });
  if (user != turns.end()) {
    user->text.insert(0, missing);
  } else {
    const bool has_system = !turns.empty() && turns.front().speaker == Speaker::system;
    turns.insert(turns.begin() + (has_system ? 1 : 0), {Speaker::user, missing});
  }
  return turns;
}

// Collects the items of a sample up to its greatest length.
class ItemWriter {
 public:
  ItemWriter(const SampleShape& shape, EncodedConversation& out) : shape_(shape), out_(out) {}

  void add_image() {
    if (full_ || !fits(shape_.image_rows)) return;
    out_.items.push_back({Modality::image, shape_.patches, 0});
    rows_ += shape_.image_rows;
    ++out_.images;
  }

  // An item ends after the last position that predicts a label, and at an image.
  void add_run(const EncodedRun& run) {
    Item item{Modality::text, 0, 0};
    for (std::size_t i = 0; i < run.ids.size(); ++i) {
      const bool predicts = i + 1 < run.ids.size() && run.trained[i + 1];
      if (item.loss_tokens > 0 && !predicts) {
        out_.items.push_back(item);
        item = {Modality::text, 0, 0};
      }
      if (!fits(1)) {
        out_.cut = out_.cut || predicts;
        continue;
      }
      ++rows_;
      ++item.tokens;
      out_.ids.push_back(run.ids[i]);
      if (!predicts) continue;
      ++item.loss_tokens;
      out_.labels.push_back(run.ids[i + 1]);
    }
    if (item.tokens > 0) out_.items.push_back(item);
  }

  // Leaves out what comes after the last label.
  void finish() {
    while (!out_.items.empty() && out_.items.back().loss_tokens == 0) {
      const Item last = out_.items.back();
      out_.items.pop_back();
      if (last.modality == Modality::image)
        --out_.images;
      else
        out_.ids.resize(out_.ids.size() - static_cast<std::size_t>(last.tokens));
    }
  }

 private:
  bool fits(std::int64_t rows) {
    full_ = full_ || (shape_.most > 0 && rows_ + rows > shape_.most);
    return !full_;
  }

  const SampleShape& shape_;
  EncodedConversation& out_;
  std::int64_t rows_ = 0;
  bool full_ = false;
};

// Counts the samples that are skipped, by reason, with the first one's name.
class LeftOut {
 public:
  void add(const std::string& name, const std::string& why) {
    Reason& reason = reasons_[why];
    if (reason.count++ == 0) reason.first = name;
    ++all_;
  }
  std::int64_t all() const { return all_; }
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
  std::int64_t all_ = 0;
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

EncodedConversation encode_conversation(const Conversation& conversation, std::size_t images,
                                        const ConversationData& source, const Tokenizer& tokenizer,
                                        const std::string& eos,
                                        const std::vector<std::int32_t>& front,
                                        const SampleShape& shape) {
  EncodedConversation result;
  ItemWriter writer(shape, result);
  std::vector<Turn> turns = with_marks(conversation, shape.patches > 0 ? images : 0, source.system);
  for (Turn& turn : turns) {
    if (shape.patches == 0) turn.text = without_marks(turn.text);
    erase_all(turn.text, kAudioMark);
  }
  const std::vector<TextRun> runs = split_at_images(render(source.chat, turns, eos));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EncodedRun run = encode_run(runs[i], tokenizer);
    if (i == 0) {
      run.ids.insert(run.ids.begin(), front.begin(), front.end());
      run.trained.insert(run.trained.begin(), front.size(), 0);
    } else {
      writer.add_image();
    }
    writer.add_run(run);
  }
  writer.finish();
  return result;
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
  if (source.too_long == TooLong::cut) shape.most = scenario.data.sequence;

  ConversationSamples result;
  LeftOut left_out;
  std::int64_t visited = 0, cut = 0;
  const auto visit = [&](Found found) {
    ++visited;
    if (audio_module(scenario.model) && !found.sounds.empty())
      throw InputError(path, "", found.name + " has audio, which is not decoded yet",
                       "train on images and texts, or record the shapes with `polyphony scan`");
    const std::size_t images = found.pictures.size();
    if (found.conversation.image_marks() > images) {
      left_out.add(found.name, "has more <image> marks than images");
      return true;
    }
    std::optional<EncodedConversation> encoded;
    try {
      encoded =
          encode_conversation(found.conversation, images, source, tokenizer, eos, front, shape);
    } catch (const InputError& error) {
      left_out.add(found.name, "text " + error.what_is_wrong);
      return true;
    }
    if (encoded->images > images) {  // marks of the system message, or made of what was removed
      left_out.add(found.name, "has more <image> marks than images");
      return true;
    }
    Sample sample{static_cast<std::uint32_t>(result.samples_.size()), std::move(encoded->items)};
    if (sample.items.empty()) {
      left_out.add(found.name, "has no answer within /data/sequence");
      return true;
    }
    const std::int64_t rows = language_rows(scenario.model, sample);
    if (scenario.data.sequence > 0 && rows > scenario.data.sequence) {
      left_out.add(found.name, "is longer than /data/sequence");
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
  if (static_cast<double>(left_out.all()) > source.most_left_out * static_cast<double>(visited))
    throw InputError(path, "", skipped,
                     "repair the data set, or allow a larger share by "
                     "/data/source/most_left_out in " +
                         scenario.file);
  if (left_out.all() > 0) result.remarks_ = path + ": " + skipped;
  if (cut > 0)
    result.remarks_ += (result.remarks_.empty() ? path + ": " : "; ") + std::to_string(cut) +
                       " are cut at " + std::to_string(scenario.data.sequence) + " tokens";
  return result;
}

}  // namespace polyphony
