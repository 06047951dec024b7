#include "sim/question/usual_choices.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "shared/search/choices.h"

namespace polyphony::sim {
namespace {

constexpr std::int64_t kLeastTokensOfRank = 4096, kMostTokensOfMicrobatch = 32768;
constexpr std::int64_t kMostContext = 64, kMostMicrobatch = 8;

std::vector<int> up_to(std::int64_t most) {
  return powers_of_two(1, static_cast<int>(std::max<std::int64_t>(1, most)));
}

// The two powers of two, times the ranks of a node if there are several, around the share of all.
std::vector<int> ranks_around(const ChoiceOf& of) {
  const int unit = of.nodes > 1 ? of.per_node : 1, all = of.nodes * of.per_node;
  std::vector<int> ranks;
  for (int count = unit; count < all; count *= 2) {
    if (!ranks.empty() && ranks.front() <= of.encoder_share * all &&
        count <= of.encoder_share * all)
      ranks.clear();
    ranks.push_back(count);
    if (count >= of.encoder_share * all) break;
  }
  return ranks;
}

}  // namespace

void add_usual_choices(const ChoiceOf& of, nlohmann::ordered_json& search) {
  const auto add = [](nlohmann::ordered_json& object, const char* key, const auto& value) {
    if (!object.contains(key)) object[key] = value;
  };
  add(search, "microbatch",
      up_to(std::min(kMostMicrobatch, kMostTokensOfMicrobatch / of.sequence)));
  nlohmann::ordered_json& language = search["language"];
  add(language, "cp", up_to(std::min(kMostContext, of.sequence / kLeastTokensOfRank)));
  std::vector<std::string> modules{"language"};
  if (!of.encoder.empty()) modules.push_back(of.encoder);
  for (const std::string& module : modules) {
    add(search[module], "sp", true);
    add(search[module], "shard", std::vector<std::string>{"optimizer", "full"});
  }
  if (of.encoder.empty()) return;
  if (const std::vector<int> ranks = ranks_around(of); !ranks.empty())
    add(search[of.encoder], "ranks", ranks);
}

std::string usual_choices_text() {
  return "usual choices: sequence parallelism with TP, ZeRO-1 or ZeRO-3, 4,096 or more tokens a "
         "rank "
         "with CP, microbatches of up to 32,768 tokens, 1F1B plain or interleaved (--thorough: "
         "all)";
}

}  // namespace polyphony::sim
