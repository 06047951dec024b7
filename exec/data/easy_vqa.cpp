#include "exec/data/easy_vqa.h"

#include <algorithm>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/model/data_modules.h"
#include "shared/scenario_io/data_set.h"

namespace polyphony::exec {
namespace {

std::string read_text(const std::string& path) { return read_whole(path, kRecords, kRestore); }

void check_model(const Scenario& scenario, int vocabulary) {
  const Module& language = scenario.model.modules[language_module(scenario.model).value];
  if (language.vocab < vocabulary)
    throw InputError(scenario.file, "/model/" + language.name + "/vocab",
                     std::to_string(language.vocab) + " token ids are too few; easy-vqa needs " +
                         std::to_string(vocabulary),
                     "write " + std::to_string(vocabulary) + " or more");
  const Module* vision = vision_module(scenario.model);
  if (vision && vision->channels != 3)
    throw InputError(scenario.file, "/model/" + vision->name + "/channels",
                     std::to_string(vision->channels) + " channels, but easy-vqa's images have 3",
                     "write 3");
}

}  // namespace

EasyVqa::EasyVqa(const Scenario& scenario, const std::string& downloads) : data_(scenario.data) {
  const std::string folder = find_easy_vqa(scenario, downloads, read_text);
  const std::string train = vqa_questions_file(folder, VqaPart::train);
  const std::string test = vqa_questions_file(folder, VqaPart::test);
  const std::vector<VqaQuestion> training = load_vqa_questions(train, read_text);
  const std::vector<VqaQuestion> held_out = load_vqa_questions(test, read_text);
  std::vector<std::string> questions;
  for (const VqaQuestion& text : training) questions.push_back(text.question);
  vocabulary_.emplace(questions, load_vqa_answers(folder, read_text));
  check_model(scenario, vocabulary_->size());
  encode(training, train);
  encode(held_out, test);
  data_.samples = vqa_samples(scenario, training, train);
  held_out_ = vqa_samples(scenario, held_out, test, static_cast<std::uint32_t>(training.size()));
  if (const Module* vision = vision_module(scenario.model)) {
    read_images(training, folder + "/train/images", *vision);
    read_images(held_out, folder + "/test/images", *vision);
  }
}

void EasyVqa::encode(const std::vector<VqaQuestion>& texts, const std::string& file) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const VqaQuestion& text = texts[i];
    const std::string place = "/" + std::to_string(i);
    std::string unknown;
    Question question{vocabulary_->encode(text.question, unknown), vocabulary_->label(text.answer),
                      text.image};
    if (!unknown.empty())
      throw InputError(file, place + "/0",
                       "the word \"" + unknown + "\" is in no training question", kRestore);
    if (question.label < 0)
      throw InputError(file, place + "/1", "\"" + text.answer + "\" is not in answers.txt",
                       kRestore);
    questions_.push_back(std::move(question));
  }
}

void EasyVqa::read_images(const std::vector<VqaQuestion>& texts, const std::string& folder,
                          const Module& vision) {
  std::size_t count = 0;
  for (const VqaQuestion& text : texts) count = std::max(count, text.image + 1);
  images_.emplace_back(folder, count, vision.image_size);
}

Batch EasyVqa::batch(std::uint64_t step) const { return take_batch(data_, step); }

SampleContent EasyVqa::content(const Sample& sample, ContentParts parts) const {
  POLYPHONY_CHECK(sample.id < questions_.size(),
                  "sample " << sample.id << " of " << questions_.size());
  const Question& question = questions_[sample.id];
  SampleContent content;
  if (parts.images && !images_.empty())
    content.images.push_back(
        images_[sample.id < data_.samples.size() ? 0 : 1].image(question.image));
  if (parts.text) {
    content.token_ids = question.tokens;
    content.labels = {question.label};
  }
  return content;
}

}  // namespace polyphony::exec
