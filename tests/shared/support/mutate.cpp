#include "tests/shared/support/mutate.h"

#include <nlohmann/json.hpp>

#include "shared/random.h"

namespace polyphony::test {
namespace {

using Json = nlohmann::json;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_bits(seed_, count_++) % n; }

 private:
  std::uint64_t seed_, count_ = 0;
};

void collect(const Json& value, const Json::json_pointer& at,
             std::vector<Json::json_pointer>& out) {
  if (!at.empty()) out.push_back(at);
  if (value.is_object())
    for (const auto& [key, child] : value.items()) collect(child, at / key, out);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) collect(value.at(i), at / i, out);
}

const std::vector<Json>& odd_values() {
  static const std::vector<Json> values = {nullptr,
                                           true,
                                           -1,
                                           0,
                                           1,
                                           3,
                                           7,
                                           1 << 20,
                                           2147483647,
                                           -2147483648LL,
                                           9223372036854775807LL,
                                           18446744073709551615ULL,
                                           1e300,
                                           -0.5,
                                           1e-300,
                                           "",
                                           "auto",
                                           "all",
                                           "400",
                                           "400Gbps",
                                           "80GiB",
                                           "-3us",
                                           "1e308TFLOPS",
                                           "2.50USD/GPUh",
                                           "uniform(0,3)",
                                           "uniform(0,1000000000)",
                                           "lognormal(20,5)",
                                           "lognormal(0,5,0,1073741824)",
                                           "vision",
                                           "language",
                                           "projector",
                                           "hgx-h100",
                                           "this-machine",
                                           "gb200-nvl72",
                                           "colocated",
                                           "homogeneous",
                                           "non-colocated",
                                           "interleaved",
                                           "llama-3.1-70b",
                                           "gpt-175b",
                                           "vit-22b",
                                           "lora",
                                           "frozen",
                                           "4x4",
                                           "\xc3\xa9\x01",
                                           std::string(10000, 'x'),
                                           Json::array(),
                                           Json::object(),
                                           Json::array({1, 2, 3}),
                                           Json::array({"1f1b", "gpipe"}),
                                           Json::array({Json::array()}),
                                           Json{{"first", 1}, {"count", 2}},
                                           Json{{"recorded", "mix.jsonl"}},
                                           Json{{"device", "H100"}, {"ranks", 4}},
                                           Json{{"module", "vision"}, {"to_layer", 1}}};
  return values;
}

// One to three changes of the document.
std::string mutate_document(Json document, Dice& dice) {
  const std::size_t changes = 1 + dice.below(3);
  for (std::size_t i = 0; i < changes; ++i) {
    std::vector<Json::json_pointer> places;
    collect(document, Json::json_pointer(), places);
    if (places.empty()) break;
    const Json::json_pointer place = places[dice.below(places.size())];
    const Json::json_pointer other = places[dice.below(places.size())];
    switch (dice.below(5)) {
      case 0: {  // delete
        Json& parent = document.at(place.parent_pointer());
        if (parent.is_object()) parent.erase(place.back());
        if (parent.is_array()) parent.erase(std::stoul(place.back()));
        break;
      }
      case 1:
        document.at(place) = odd_values()[dice.below(odd_values().size())];
        break;
      case 2: {  // a value that is legal elsewhere
        const Json copy = document.at(other);
        document.at(place) = copy;
        break;
      }
      case 3:  // an unknown key, or a known one of another object
        if (Json& parent = document.at(place.parent_pointer()); parent.is_object()) {
          const Json copy = document.at(other);
          parent[dice.below(2) == 0 ? "nonsense" : other.back()] = copy;
        }
        break;
      default:  // scaled
        if (Json& value = document.at(place); value.is_number_integer())
          value = value.get<std::int64_t>() * (dice.below(2) == 0 ? -1 : 1000);
    }
  }
  return document.dump();
}

std::string mutate_text(std::string text, Dice& dice) {
  if (dice.below(2) == 0) return text.substr(0, dice.below(text.size()));
  const std::size_t changes = 1 + dice.below(4);
  for (std::size_t i = 0; i < changes; ++i)
    text[dice.below(text.size())] = static_cast<char>(dice.below(256));
  return text;
}

}  // namespace

std::string mutated_scenario(std::uint64_t seed, std::string& path) {
  static const std::vector<std::string> paths = scenario_paths();
  Dice dice(seed);
  path = paths[dice.below(paths.size())];
  // Resolved texts have more keys to change than the short ones that extend another.
  const std::string original =
      dice.below(2) == 0 ? file_text(path) : resolved_text(scenario_at(path));
  return dice.below(5) == 0 ? mutate_text(original, dice)
                            : mutate_document(Json::parse(original, nullptr, true, true), dice);
}

}  // namespace polyphony::test
