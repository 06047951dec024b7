// The text of the data set easy-vqa: its folder, questions, answers, and the words of a question.
// `load` returns the text of a file or throws InputError. Pixels are read by the executor
// (exec/data/easy_vqa.h).
//
// All functions throw InputError that names the damaged file; if the folder is missing, the error
// names /data/source of the scenario.
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
  std::size_t image = 0;  // number of the image in the folder of images
};

// Returns the data folder (with answers.txt). It searches the folder that the scenario names, or
// `downloads` if it names none; either may be the data folder, the package, or a folder around it.
std::string find_easy_vqa(const Scenario& scenario, const std::string& downloads,
                          const LoadText& load);
enum class VqaPart : std::uint8_t { train, test };
// Returns the path of the file with the questions.
std::string vqa_questions_file(const std::string& folder, VqaPart part);
std::vector<VqaQuestion> load_vqa_questions(const std::string& file, const LoadText& load);
std::vector<std::string> load_vqa_answers(const std::string& folder, const LoadText& load);

// Returns the words of a question in lower case. Words consist of letters and digits; apostrophes
// are removed, all other characters separate words.
std::vector<std::string> question_words(const std::string& question);

// Returns the folder in which set-up stores downloaded data sets. `variable` returns the value of
// an environment variable.
std::string download_folder(
    const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace polyphony
