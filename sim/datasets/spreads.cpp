#include "sim/datasets/spreads.h"

#include <algorithm>

#include "shared/program/work.h"

namespace polyphony::sim {

std::int64_t Spread::at(double share) const {
  return values.empty()
             ? 0
             : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

std::vector<Spread> spreads_of(const Model& model, const std::vector<Sample>& samples) {
  std::vector<Spread> all{{"pictures", "images", {}},
                          {"patches of one", "patches of an image", {}},
                          {"sounds", "audio clips", {}},
                          {"clip tokens of one", "tokens of a clip", {}},
                          {"text tokens", "text tokens", {}},
                          {"of them labels", "text tokens with loss", {}},
                          {"language tokens", "language tokens", {}}};
  for (const Sample& sample : samples) {
    std::int64_t pictures = 0, sounds = 0;
    for (const Item& item : sample.items) {
      if (item.modality == Modality::image) all[1].values.push_back(item.tokens);
      if (item.modality == Modality::audio) all[3].values.push_back(item.tokens);
      pictures += item.modality == Modality::image;
      sounds += item.modality == Modality::audio;
      if (item.modality != Modality::text) continue;
      all[4].values.push_back(item.tokens);
      all[5].values.push_back(item.loss_tokens);
    }
    all[0].values.push_back(pictures);
    all[2].values.push_back(sounds);
    all[6].values.push_back(language_rows(model, sample));
  }
  for (Spread& spread : all) std::sort(spread.values.begin(), spread.values.end());
  return all;
}

nlohmann::ordered_json to_json(const std::vector<Spread>& spreads, std::size_t samples,
                               const std::map<std::string, int>& left_out) {
  nlohmann::ordered_json json = {{"samples", samples}};
  for (const Spread& spread : spreads)
    json["spread"][spread.key] = {{"least", spread.at(0)},
                                  {"median", spread.at(0.5)},
                                  {"p90", spread.at(0.9)},
                                  {"p99", spread.at(0.99)},
                                  {"most", spread.at(1)}};
  json["left_out"] = left_out;
  return json;
}

}  // namespace polyphony::sim
