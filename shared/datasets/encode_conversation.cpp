// Implements encode_conversation() of shared/datasets/conversation_samples.h.
#include <algorithm>
#include <utility>

#include "shared/datasets/chat_template.h"
#include "shared/datasets/conversation_samples.h"

namespace polyphony {
namespace {

// A text between two images or clips, and where in it (in bytes) what the assistant says begins and
// ends.
struct TextRun {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> trained;
};
// Texts, and what stands between them: one fewer than there are texts.
struct SplitText {
  std::vector<TextRun> runs{1};
  std::vector<Modality> between;
};

struct Mark {
  std::size_t at = std::string::npos, bytes = 0;
  Modality modality = Modality::image;
};
// Returns the first mark from `begin` on, at npos if there is none.
Mark next_mark(const std::string& text, std::size_t begin) {
  Mark next;
  for (const auto& [mark, modality] : {std::pair(std::string(kImageMark), Modality::image),
                                       std::pair(std::string(kAudioMark), Modality::audio)})
    if (const std::size_t at = text.find(mark, begin); at < next.at)
      next = {at, mark.size(), modality};
  return next;
}

SplitText split_at_marks(const std::vector<RenderedPart>& parts) {
  SplitText split;
  for (const RenderedPart& part : parts)
    for (std::size_t at = 0;;) {
      const Mark mark = next_mark(part.text, at);
      TextRun& run = split.runs.back();
      const std::size_t begin = run.text.size();
      run.text += part.text.substr(at, mark.at == std::string::npos ? mark.at : mark.at - at);
      if (part.trained && run.text.size() > begin) run.trained.emplace_back(begin, run.text.size());
      if (mark.at == std::string::npos) break;
      split.runs.emplace_back();
      split.between.push_back(mark.modality);
      at = mark.at + mark.bytes;
    }
  return split;
}

// The ids of a run, and which of them the model learns to say.
struct EncodedRun {
  std::vector<std::int32_t> ids;
  std::vector<char> trained;
};

// Returns how many ids a text of the run that ends at `byte` has in common with the whole run: an
// id that reaches over the end belongs to what follows. Only what follows the last added token
// before `byte` is encoded again.
std::size_t id_at(std::size_t byte, const TextRun& run, const std::vector<std::int32_t>& ids,
                  const std::vector<Tokenizer::Seam>& seams, const Tokenizer& tokenizer) {
  if (byte == run.text.size()) return ids.size();
  const auto after = std::upper_bound(
      seams.begin(), seams.end(), byte,
      [](std::size_t wanted, const Tokenizer::Seam& seam) { return wanted < seam.end; });
  const Tokenizer::Seam from = after == seams.begin() ? Tokenizer::Seam() : *std::prev(after);
  const std::vector<std::int32_t> front =
      tokenizer.encode(std::string_view(run.text).substr(from.begin, byte - from.begin));
  const auto place = static_cast<std::ptrdiff_t>(from.place);
  const auto [end, other] =
      std::mismatch(front.begin(), front.end(), ids.begin() + place, ids.end());
  return from.place + static_cast<std::size_t>(end - front.begin());
}

EncodedRun encode_run(const TextRun& run, const Tokenizer& tokenizer) {
  EncodedRun encoded;
  std::vector<Tokenizer::Seam> seams;
  encoded.ids = tokenizer.encode(run.text, seams);
  encoded.trained.assign(encoded.ids.size(), 0);
  for (const auto& [begin, end] : run.trained) {
    const std::size_t first = id_at(begin, run, encoded.ids, seams, tokenizer);
    const std::size_t last = id_at(end, run, encoded.ids, seams, tokenizer);
    for (std::size_t i = first; i < last; ++i) encoded.trained[i] = 1;
  }
  return encoded;
}

// Returns the turns with the system message in front, if they have none, and with a mark for each
// image and clip: those that have none come before the first turn of the user.
std::vector<Turn> with_marks(const Conversation& conversation, std::size_t images,
                             std::size_t clips, const std::string& system) {
  std::vector<Turn> turns = conversation.turns;
  if (!system.empty() && (turns.empty() || turns.front().speaker != Speaker::system))
    turns.insert(turns.begin(), {Speaker::system, system});
  std::string missing;
  for (std::size_t i = conversation.marks(kImageMark); i < images; ++i) missing += kImageMark;
  for (std::size_t i = conversation.marks(kAudioMark); i < clips; ++i) missing += kAudioMark;
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
  ItemWriter(const SampleShape& shape, const SampleMedia& media, EncodedConversation& out)
      : shape_(shape), media_(media), out_(out) {}

  void add(Modality modality) {
    const bool is_image = modality == Modality::image;
    const std::vector<SampleMedia::Medium>& all = is_image ? media_.images : media_.clips;
    std::size_t& count = is_image ? out_.images : out_.clips;
    SampleMedia::Medium medium{{modality, 0, 0}};
    if (count < all.size()) medium = all[count];
    if (full_ || !fits(medium.rows)) return;
    out_.items.push_back(medium.item);
    rows_ += medium.rows;
    ++count;
  }

  // An item ends after the last position that predicts a label, and at an image or clip.
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
      else if (last.modality == Modality::audio)
        --out_.clips;
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
  const SampleMedia& media_;
  EncodedConversation& out_;
  std::int64_t rows_ = 0;
  bool full_ = false;
};

}  // namespace

EncodedConversation encode_conversation(const Conversation& conversation, const SampleMedia& media,
                                        const ConversationData& source, const Tokenizer& tokenizer,
                                        const std::string& eos,
                                        const std::vector<std::int32_t>& front,
                                        const SampleShape& shape) {
  EncodedConversation result;
  ItemWriter writer(shape, media, result);
  std::vector<Turn> turns = with_marks(conversation, shape.images ? media.images.size() : 0,
                                       shape.audio ? media.clips.size() : 0, source.system);
  for (Turn& turn : turns) {
    if (!shape.images) erase_all(turn.text, kImageMark);
    if (!shape.audio) erase_all(turn.text, kAudioMark);
  }
  const SplitText split = split_at_marks(render(source.chat, turns, eos));
  for (std::size_t i = 0; i < split.runs.size(); ++i) {
    EncodedRun run = encode_run(split.runs[i], tokenizer);
    if (i == 0) {
      run.ids.insert(run.ids.begin(), front.begin(), front.end());
      run.trained.insert(run.trained.begin(), front.size(), 0);
    } else {
      writer.add(split.between[i - 1]);
    }
    writer.add_run(run);
  }
  writer.finish();
  return result;
}

}  // namespace polyphony
