// The shapes of a data set's training samples, as planning and prediction need them
// (Data::samples). `load` returns a file's text or throws InputError; nothing here opens files.
//   recorded: what its JSON lines say.   easy-vqa: image, words of the question and one query token.
#pragma once

#include <string>

#include "shared/scenario_io/easy_vqa.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony {

// Fills scenario.data.samples; nothing to do for synthetic data. `downloads`: where set-up puts data
// sets (download_folder()). Errors: InputError when a file is missing or damaged, or holds a sample
// that the model cannot take.
void load_samples(Scenario& scenario, const std::string& downloads, const LoadText& load);

// Of easy-vqa: the questions of `file`, whose ids count from `first`.
std::vector<Sample> vqa_samples(const Scenario& scenario, const std::vector<VqaQuestion>& questions,
                                const std::string& file, std::uint32_t first = 0);

}  // namespace polyphony
