// How the samples of a data set spread: what a sample holds, from the least to the most.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony::sim {

// One count: of each sample, or of each of its images or clips.
struct Spread {
  const char* key;                   // in JSON
  const char* what;                  // in the table
  std::vector<std::int64_t> values;  // ascending
  // Returns the value below which this share of the others lies; 0 if there is none.
  std::int64_t at(double share) const;
};

// Returns the spreads of images, audio clips, texts, and of the rows of the model's language
// module.
std::vector<Spread> spreads_of(const Model& model, const std::vector<Sample>& samples);

// `left_out`: how many samples were skipped, by reason.
nlohmann::ordered_json to_json(const std::vector<Spread>& spreads, std::size_t samples,
                               const std::map<std::string, int>& left_out);

}  // namespace polyphony::sim
