// What a page shows of a sweep's answer, from its JSON (sim/answer_json/answers_json.h): the ranking, where
// the step of the best of each placement goes, step time against memory; of `--vary` a map of the best
// placements over two variations, lines over one. Errors: nlohmann's, where the JSON is no such answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/report/report.h"

namespace polyphony::sim {

std::vector<traces::Section> answer_sections(const nlohmann::json& answer);
// A page of its own; `question`: the scenario's file.
traces::Report answer_page(const nlohmann::json& answer, const std::string& question);

}  // namespace polyphony::sim
