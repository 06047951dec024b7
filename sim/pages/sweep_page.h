// The HTML page of a sweep's answer, made from its JSON (sim/answer_json/answers_json.h): what was
// asked, the ranking, where the step time of the best layout of each placement goes, step time
// against memory, how far the search went; of `--vary` a map of the best placements over two
// variations, lines over one. Throws nlohmann's errors where the JSON is not such an answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/report/report.h"

namespace polyphony::sim {

std::vector<traces::Section> answer_sections(const nlohmann::json& answer);
// Returns a whole page; `question`: the scenario's file.
traces::Report answer_page(const nlohmann::json& answer, const std::string& question);

}  // namespace polyphony::sim
