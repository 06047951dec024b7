// Samples of conversations as the model reads them: the rendered text, which of it is trained on,
// and where images and audio clips are.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony::sim {

struct ShownPart {
  Modality modality = Modality::text;
  std::string text{};       // decoded; empty for images and clips
  bool trained = false;     // the loss counts how well it is predicted
  std::int64_t tokens = 0;  // of text; patches of an image; encoder tokens of a clip
};
struct ShownSample {
  std::string data_set;    // its path
  std::size_t number = 0;  // among those that are used, from 0
  std::int64_t rows = 0;   // of the language module
  std::vector<ShownPart> parts;

  std::int64_t trained() const;  // tokens
};

struct ShownSamples {
  std::vector<ShownSample> samples;
  std::vector<std::string> remarks;  // what was skipped or cut, and why
};

// Returns the first `count` samples of each data set of conversations that the scenario trains on.
// `downloads`: folder of downloaded data sets, for the indexes of tar shards. Throws InputError if
// it trains on something else, and as read_conversations() does.
ShownSamples shown_samples(const Scenario& scenario, std::size_t count,
                           const std::string& downloads);

nlohmann::ordered_json to_json(const ShownSamples& shown);

}  // namespace polyphony::sim
