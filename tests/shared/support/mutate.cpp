#include "tests/shared/support/mutate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

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

// Makes one to three changes to the document.
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
      case 2: {  // replace by a value that is legal elsewhere
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
      default:  // scale a number
        if (Json& value = document.at(place); value.is_number_integer())
          value = static_cast<std::int64_t>(  // wraps around
              value.get<std::uint64_t>() * (dice.below(2) == 0 ? ~std::uint64_t{0} : 1000));
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

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

std::string mutate_word(const std::string& line, const std::string& separators, Dice& dice) {
  static const std::vector<std::string> odd = {"",      "-1",          "0",
                                               "1e300", "nan",         "99999999999999999999",
                                               "\"",    "\"x",         "\xc3\xa9\x01",
                                               "1.5",   "true",        "-inf",
                                               "0x10",  "#",           std::string(5000, '9'),
                                               "\r",    "\xef\xbb\xbf"};
  const std::size_t at = dice.below(line.size());
  const std::size_t before = line.find_last_of(separators, at);
  const std::size_t begin = before == std::string::npos ? 0 : std::min(before + 1, line.size());
  const std::size_t end = std::min(line.find_first_of(separators, begin), line.size());
  return line.substr(0, begin) + odd[dice.below(odd.size())] + line.substr(end);
}

}  // namespace

std::string mutated_json(std::uint64_t seed, const std::string& original) {
  Dice dice(seed);
  return dice.below(5) == 0 ? mutate_text(original, dice)
                            : mutate_document(Json::parse(original, nullptr, true, true), dice);
}

std::string mutated_lines(std::uint64_t seed, const std::string& original,
                          const std::string& separators) {
  Dice dice(seed);
  if (dice.below(5) == 0) return mutate_text(original, dice);
  std::vector<std::string> lines = lines_of(original);
  const std::size_t changes = 1 + dice.below(3);
  for (std::size_t i = 0; i < changes && !lines.empty(); ++i) {
    const std::size_t at = dice.below(lines.size());
    const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
    switch (dice.below(6)) {
      case 0:
        lines.erase(place);
        break;
      case 1:
        lines.insert(place, lines[dice.below(lines.size())]);
        break;
      case 2:
        std::swap(lines[at], lines[dice.below(lines.size())]);
        break;
      default:
        lines[at] = mutate_word(lines[at], separators, dice);
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string mutated_scenario(std::uint64_t seed, std::string& path) {
  static const std::vector<std::string> paths = scenario_paths();
  Dice dice(seed);
  path = paths[dice.below(paths.size())];
  // Resolved texts have more keys to change than the short ones that extend another.
  const std::string original =
      dice.below(2) == 0 ? file_text(path) : resolved_text(scenario_at(path));
  return mutated_json(random_bits(seed, 1), original);
}

}  // namespace polyphony::test
