// The index of conversations in tar shards: which file it is, and when it is still valid.
//   Samples depend on the shards, the tokenizer, the settings of the data source, and what the
// model makes of images and clips. The index's key lists all of that, files by path, size and time
// of change; a file that was replaced by one of the same size and time is not noticed.
//   Only tar shards have one. In other data sets each image and clip is a file of its own, and
// looking at all of them costs as much as reading them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/datasets/conversation_samples.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct IndexName {
  std::string file, key;
};
// Returns the index of the data set at `path` in the folder `indexes`; nothing if there can be
// none, or `indexes` is empty. Throws InputError if a shard is missing.
std::optional<IndexName> index_name(const Scenario& scenario, const std::string& path,
                                    const std::string& indexes);

// Returns the samples of an index; nothing if it is missing, stale or damaged.
std::optional<ConversationSamples> indexed_samples(const IndexName& name);

// Returns the tail of an index.
std::string index_tail(const std::vector<std::string>& paths, const std::string& remarks);

}  // namespace polyphony
