// Reads a data set of conversations into records (sample_records.h): finds samples on this thread,
// encodes them on others, and keeps their order.
#pragma once

#include <deque>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/datasets/conversation_samples.h"
#include "shared/datasets/found.h"
#include "shared/datasets/native_images.h"
#include "shared/tokenizer/tokenizer.h"

namespace polyphony {

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

class ConversationReading {
 public:
  // `index`: takes the records; if it is null, the result does. All arguments must outlive the
  // object. Throws InputError as read_conversations() does, and so does read().
  ConversationReading(const Scenario& scenario, const std::string& path, IndexWriter* index);
  ConversationSamples read();

 private:
  // A sample on its way: as found, then encoded or with a reason to skip it.
  struct Read {
    Found found;
    EncodedConversation encoded;
    std::string why;
    bool too_long = false;
  };
  using Group = std::vector<Read>;
  // What is in front of the first text and behind answers, of templates that write it.
  struct Marks {
    std::string eos;
    std::vector<std::int32_t> front;
  };

  static Marks marks_of(const ConversationData& source, const Tokenizer& tokenizer);
  void take(Read read);
  void encode_group();
  void add_oldest();
  void encode(Read& read) const;
  std::string lacks(const Found& found, std::size_t images, std::size_t clips) const;
  void add(const Read& read);
  void add_record(const EncodedConversation& encoded, const Found& found);
  MediaPlace place_of(const FilePart& file);
  SampleMedia media_of(const Found& found) const;
  // Returns why one of the images is refused; empty: none is.
  std::string refused_image(const Found& found) const;
  // Returns the item of an image; nothing if it is refused.
  std::optional<Item> image_of(const PictureSize& size) const;
  std::string skipped() const {
    return std::to_string(left_out_.all()) + " of " + std::to_string(visited_) +
           " samples are skipped: " + left_out_.text();
  }
  void check_left_out() const;
  void set_remarks();

  const Scenario& scenario_;
  const ConversationData& source_;
  const std::string& path_;
  IndexWriter* index_;
  Tokenizer tokenizer_;
  Marks marks_;
  SampleShape shape_;
  std::optional<NativeImages> native_;
  ConversationSamples result_;
  LeftOut left_out_;
  std::int64_t visited_ = 0, cut_ = 0, clips_cut_ = 0;
  std::int64_t images_ = 0, clips_ = 0;  // of the samples that are used
  std::string record_;
  Group group_;
  std::deque<std::future<Group>> encoding_;  // groups in their order
};

}  // namespace polyphony
