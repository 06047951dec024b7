// The data set easy-vqa as text: where its folder is, its questions and answers, a question's words.
// Files come through `load`; pixels are the executor's (exec/data/easy_vqa.h).
//   Words: lower case, split at everything but letters, digits and apostrophes; apostrophes vanish.
// Errors: InputError naming the file; a missing folder also names /data/source of the scenario.
// Source: the PyPI package easy-vqa 1.0 (easy_vqa/data/{train,test}/questions.json, answers.txt).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shared/scenario_io/scenario_json.h"

namespace polyphony {

struct VqaQuestion {
  std::string question, answer;
  std::size_t image = 0;  // its number in the folder of images
};

// The data folder under what the scenario names, or under `downloads` when it names none: the
// package, the folder around it, or the data themselves.
std::string find_easy_vqa(const Scenario& scenario, const std::string& downloads,
                          const LoadText& load);
enum class VqaPart : std::uint8_t { train, test };
std::string vqa_questions_file(const std::string& folder, VqaPart part);
std::vector<VqaQuestion> load_vqa_questions(const std::string& file, const LoadText& load);
std::vector<std::string> load_vqa_answers(const std::string& folder, const LoadText& load);

std::vector<std::string> question_words(const std::string& question);

// Where set-up puts downloaded data sets; `variable` looks an environment variable up.
std::string download_folder(
    const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace polyphony
