#include "shared/scenario_io/easy_vqa.h"

#include <sstream>

#include "shared/text/strict_json.h"

namespace polyphony {
namespace {

constexpr const char* kRestore = "unpack the data set again";

bool can_be_read(const std::string& path, const LoadText& load) {
  try {
    load(path);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::string find_easy_vqa(const Scenario& scenario, const std::string& downloads,
                          const LoadText& load) {
  const std::string& named = std::get<EasyVqaData>(scenario.data.source).path;
  const std::string& base = named.empty() ? downloads : named;
  for (const char* below : {"/easy-vqa-1.0/easy_vqa/data", "/easy_vqa/data", "/data", ""})
    if (can_be_read(base + below + "/answers.txt", load)) return base + below;
  throw InputError(
      scenario.file, "/data/source", "the data set easy-vqa is not in " + base,
      "run scripts/setup, or name the folder of the unpacked package: {\"easy-vqa\": \"FOLDER\"}");
}

std::string vqa_questions_file(const std::string& folder, VqaPart part) {
  return folder + (part == VqaPart::train ? "/train" : "/test") + "/questions.json";
}

std::vector<VqaQuestion> load_vqa_questions(const std::string& file, const LoadText& load) {
  const JsonValue list = JsonValue::parse(load(file), file);
  if (!list.is_list() || list.size() == 0)
    list.refuse("the file is not a list of questions", kRestore);
  std::vector<VqaQuestion> questions;
  questions.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue entry = list.at(i);
    entry.check(list_form(any_form({text_form("is it red?"), integer_form(0, 1'000'000)}), 3, 3));
    if (!entry.at(0).is_text() || !entry.at(1).is_text() || !entry.at(2).is_number())
      entry.refuse("the entry is not [question, answer, image number]", kRestore);
    questions.push_back(
        {entry.at(0).text(), entry.at(1).text(), static_cast<std::size_t>(entry.at(2).integer())});
  }
  return questions;
}

std::vector<std::string> load_vqa_answers(const std::string& folder, const LoadText& load) {
  const std::string file = folder + "/answers.txt";
  std::istringstream text(load(file));
  std::vector<std::string> answers;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) answers.push_back(line);
  }
  if (answers.empty()) throw InputError(file, "", "the file has no answers", kRestore);
  return answers;
}

std::vector<std::string> question_words(const std::string& question) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : question + " ") {
    const bool upper =
        c >= 'A' && c <= 'Z';  // not tolower(): the result must not depend on the locale
    const bool belongs = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                         static_cast<unsigned char>(c) >= 0x80;
    if (belongs) {
      word += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (c != '\'' && !word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

std::string download_folder(
    const std::function<std::optional<std::string>(const std::string&)>& variable) {
  if (const auto cache = variable("POLYPHONY_CACHE")) return *cache;
  if (const auto cache = variable("XDG_CACHE_HOME")) return *cache + "/polyphony";
  if (const auto home = variable("HOME")) return *home + "/.cache/polyphony";
  return ".";
}

}  // namespace polyphony
