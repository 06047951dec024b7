#include "exec/data/easy_vqa.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "exec/data/dataset_model.h"
#include "exec/system/files.h"
#include "shared/error.h"
#include "shared/program/work.h"
#include "shared/text/strict_json.h"

namespace polyphony::exec {
namespace {

constexpr const char* kRestore = "unpack the data set again";

// The data folder under what a person or the set-up names: the package, the folder around it, or
// the data themselves.
std::string find_data(const std::string& file, const std::string& named,
                      const std::string& default_path) {
  const std::filesystem::path base = named.empty() ? default_path : named;
  for (const char* below : {"easy-vqa-1.0/easy_vqa/data", "easy_vqa/data", "data", ""}) {
    const std::filesystem::path folder = *below ? base / below : base;
    if (std::filesystem::exists(folder / "answers.txt")) return folder.string();
  }
  throw InputError(
      file, "/data/source", "the data set easy-vqa is not in " + base.string(),
      "run scripts/setup, or name the folder of the unpacked package: {\"easy-vqa\": \"FOLDER\"}");
}

std::vector<std::string> read_answers(const std::string& file) {
  std::istringstream text(read_bytes(file, kRestore));
  std::vector<std::string> answers;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) answers.push_back(line);
  }
  if (answers.empty()) throw InputError(file, "", "holds no answers", kRestore);
  return answers;
}

void check_model(const Scenario& scenario, int vocabulary) {
  const Module& language = scenario.model.modules[language_module(scenario.model).value];
  if (language.vocab < vocabulary)
    throw InputError(scenario.file, "/model/" + language.name + "/vocab",
                     std::to_string(language.vocab) + " token ids are too few: easy-vqa has " +
                         std::to_string(vocabulary),
                     "write " + std::to_string(vocabulary) + " or more");
  const Module* vision = vision_module(scenario.model);
  if (vision && vision->channels != 3)
    throw InputError(scenario.file, "/model/" + vision->name + "/channels",
                     std::to_string(vision->channels) + " channels; easy-vqa's images have 3",
                     "write 3");
}

}  // namespace

EasyVqa::EasyVqa(const Scenario& scenario, const std::string& default_path) : data_(scenario.data) {
  const std::string folder =
      find_data(scenario.file, std::get<EasyVqaData>(data_.source).path, default_path);
  const std::string train = folder + "/train", test = folder + "/test";
  const std::vector<Text> training = read_questions(train + "/questions.json");
  const std::vector<Text> held_out = read_questions(test + "/questions.json");
  std::vector<std::string> questions;
  for (const Text& text : training) questions.push_back(text.question);
  vocabulary_.emplace(questions, read_answers(folder + "/answers.txt"));
  check_model(scenario, vocabulary_->size());
  training_ = make_samples(training, train + "/questions.json", scenario);
  held_out_ = make_samples(held_out, test + "/questions.json", scenario);
  if (const Module* vision = vision_module(scenario.model)) {
    read_images(training, train + "/images", *vision);
    read_images(held_out, test + "/images", *vision);
  }
}

std::vector<EasyVqa::Text> EasyVqa::read_questions(const std::string& file) {
  const JsonValue list = JsonValue::parse(read_bytes(file, kRestore), file);
  if (!list.is_list() || list.size() == 0) list.refuse("is no list of questions", kRestore);
  std::vector<Text> texts;
  texts.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue entry = list.at(i);
    entry.check(list_form(any_form({text_form("is it red?"), integer_form(0, 1'000'000)}), 3, 3));
    if (!entry.at(0).is_text() || !entry.at(1).is_text() || !entry.at(2).is_number())
      entry.refuse("is not [question, answer, image number]", kRestore);
    texts.push_back(
        {entry.at(0).text(), entry.at(1).text(), static_cast<std::size_t>(entry.at(2).integer())});
  }
  return texts;
}

std::vector<Sample> EasyVqa::make_samples(const std::vector<Text>& texts, const std::string& file,
                                          const Scenario& scenario) {
  const Module* vision = vision_module(scenario.model);
  std::vector<Sample> samples;
  samples.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Text& text = texts[i];
    const std::string place = "/" + std::to_string(i);
    std::string unknown;
    Question question{vocabulary_->encode(text.question, unknown), vocabulary_->label(text.answer),
                      text.image};
    if (!unknown.empty())
      throw InputError(file, place + "/0", "no training question has the word \"" + unknown + "\"",
                       kRestore);
    if (question.label < 0)
      throw InputError(file, place + "/1", "\"" + text.answer + "\" is not in answers.txt",
                       kRestore);
    Sample sample;
    sample.id = static_cast<std::uint32_t>(questions_.size());
    if (vision) sample.items.push_back({Modality::image, patches_of(*vision), 0});
    sample.items.push_back({Modality::text, static_cast<std::int32_t>(question.tokens.size()), 1});
    const std::int64_t length = language_rows(scenario.model, sample);
    if (data_.sequence > 0 && length > data_.sequence)
      throw InputError(scenario.file, "/data/sequence",
                       std::to_string(data_.sequence) + " is shorter than question " +
                           std::to_string(i) + " of " + file + " with its image, " +
                           std::to_string(length) + " tokens",
                       "allow more, or leave it out");
    questions_.push_back(std::move(question));
    samples.push_back(std::move(sample));
  }
  return samples;
}

void EasyVqa::read_images(const std::vector<Text>& texts, const std::string& folder,
                          const Module& vision) {
  std::size_t count = 0;
  for (const Text& text : texts) count = std::max(count, text.image + 1);
  images_.emplace_back(folder, count, vision.image_size);
}

Batch EasyVqa::batch(std::uint64_t step) const {
  return take_batch(training_, data_.global_batch, data_.seed, step);
}

SampleContent EasyVqa::content(const Sample& sample, ContentParts parts) const {
  POLYPHONY_CHECK(sample.id < questions_.size(),
                  "sample " << sample.id << " of " << questions_.size());
  const Question& question = questions_[sample.id];
  SampleContent content;
  if (parts.images && !images_.empty())
    content.images.push_back(images_[sample.id < training_.size() ? 0 : 1].image(question.image));
  if (parts.text) {
    content.token_ids = question.tokens;
    content.labels = {question.label};
  }
  return content;
}

}  // namespace polyphony::exec
