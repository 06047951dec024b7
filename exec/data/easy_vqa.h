// The easy-VQA data set (MIT license): questions about images of one colored shape, each with one
// of 13 answers. A sample is one question:
//   [image: (64 / patch)² patches] [text: its words and a query token, whose position predicts the
//   answer]
// Neither the answer nor another question is visible in the input. Without a vision module the
// samples are text only.
//   <folder>/answers.txt                            one answer per line
//   <folder>/{train,test}/questions.json            [[question, answer, image number], …]
//   <folder>/{train,test}/images/<number>.png       64 × 64, RGB
//
// Training batches are drawn from all of train; the held-out samples are all of test. Sample ids
// count through train, then on through test. Source: the PyPI package easy-vqa 1.0, with 38,575 and
// 9,673 questions about 4,000 and 1,000 images.
#pragma once

#include <optional>

#include "exec/data/dataset.h"
#include "exec/data/image_folder.h"
#include "exec/data/question_words.h"
#include "shared/scenario_io/easy_vqa.h"

namespace polyphony::exec {

class EasyVqa : public Dataset {
 public:
  // `downloads`: the cache of the set-up script, used if the scenario names no folder. Throws
  // InputError if a file is missing or damaged.
  EasyVqa(const Scenario& scenario, const std::string& downloads);
  Batch batch(std::uint64_t step) const override;
  SampleList training() const override { return data_.samples; }
  std::vector<Sample> held_out() const override { return held_out_; }
  SampleContent content(const Sample& sample, ContentParts parts) const override;
  std::optional<std::string> text(const Sample&,
                                  const std::vector<std::int64_t>& ids) const override {
    return vocabulary_->text(ids);
  }
  const QuestionVocabulary& vocabulary() const { return *vocabulary_; }

 private:
  struct Question {
    std::vector<std::int64_t> tokens;
    std::int64_t label = 0;
    std::size_t image = 0;
  };
  void encode(const std::vector<VqaQuestion>& texts, const std::string& file);
  void read_images(const std::vector<VqaQuestion>& texts, const std::string& folder,
                   const Module& vision);

  Data data_;
  std::optional<QuestionVocabulary> vocabulary_;
  std::vector<Question> questions_;  // by sample id
  std::vector<Sample> held_out_;
  std::vector<ImageFolder> images_;  // train's and test's; empty without a vision module
};

}  // namespace polyphony::exec
