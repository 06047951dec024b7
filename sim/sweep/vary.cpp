#include "sim/sweep/vary.h"

namespace polyphony::sim {

std::vector<std::vector<std::string>> combinations(const std::vector<Variation>& variations) {
  std::vector<std::vector<std::string>> all{{}};
  for (const Variation& variation : variations) {
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& before : all)
      for (const std::string& value : variation.values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<Override> overrides_of(const std::vector<Variation>& variations,
                                   const std::vector<std::string>& values) {
  std::vector<Override> overrides;
  for (std::size_t i = 0; i < values.size(); ++i)
    overrides.push_back(parse_override(variations[i].path + "=" + values[i]));
  return overrides;
}

const Candidate* best_of(const Sweep& answer, Placement placement) {
  for (const Candidate& c : answer.ranked)
    if (c.layout.placement == placement) return &c;
  return nullptr;
}

}  // namespace polyphony::sim
