// Reads the shapes of a data set's training samples, which planning and prediction need
// (Data::samples).
//   recorded   a sample has the items that its JSON line lists
//   text       a sample has Data::sequence tokens of the text; the last one has the rest
//   tokens     the same, of a file of token ids (shared/datasets/token_file.h)
//   dataset    a sample is a conversation with its images
//              (shared/datasets/conversation_samples.h)
//   easy-vqa   a sample has one image, the words of the question, and one query token
//   mixture    the samples of its parts, one part after another
// `load` returns the text of a file or throws InputError. Only data sets of conversations, whose
// images may be in archives, and files of token ids are opened without it.
#pragma once

#include <string>

#include "shared/scenario_io/easy_vqa.h"
#include "shared/scenario_io/scenario_json.h"

namespace polyphony {

// Returns the folder of the indexes of data sets (shared/datasets/conversation_index.h), which is
// in that of downloads; empty, which means none, if that is the current folder for want of another.
std::string index_folder(const std::string& downloads);

// Fills scenario.data.samples and scenario.data.remarks; does nothing for synthetic data.
// `downloads` is the folder in which set-up stores data sets (download_folder()). Throws InputError
// if a file is missing or damaged, or contains a sample that the model cannot process.
void load_samples(Scenario& scenario, const std::string& downloads, const LoadText& load);

// Returns the scenario with one part of its mixture as its only data source, without samples.
Scenario part_scenario(const Scenario& scenario, std::size_t part);
// Returns the weight of a part as a whole number, in millionths.
std::uint64_t mixture_weight(const MixturePart& part);
// Returns `all` and the remarks of the part at `pointer`, if there are any, in lines.
std::string with_remarks(const std::string& all, const std::string& pointer,
                         const std::string& remarks);
// Throws InputError if a mixture has `count` training or held-out samples and these are too many.
void check_listed(const Scenario& scenario, std::uint64_t count);

// Returns one sample per question of easy-vqa, with consecutive ids from `first`. `file` is used in
// error messages.
std::vector<Sample> vqa_samples(const Scenario& scenario, const std::vector<VqaQuestion>& questions,
                                const std::string& file, std::uint32_t first = 0);

// The ids of a scenario's text (TextData). Sample i has the tokens from i · Data::sequence on, and
// their labels are the ids that follow them.
struct TextSamples {
  std::vector<Sample> samples;
  std::vector<std::int32_t> ids;
};
// Returns the samples of the text at `path`, the training or the held-out one. Throws InputError if
// a file is missing or damaged, the text has fewer than two tokens, or the tokenizer has more ids
// than the model's vocabulary.
TextSamples text_samples(const Scenario& scenario, const LoadText& load, const std::string& path);

}  // namespace polyphony
