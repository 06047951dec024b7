#include "sim/cli/variations.h"

#include <algorithm>
#include <cstdlib>

#include "shared/error.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kMostValues = 256;  // of a range

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw InputError("--vary " + text, "", why,
                   "PATH=A,B,C or PATH=A..B, such as cluster.nic=200Gbps..1600Gbps");
}

// "200Gbps": 200 and "Gbps".
std::pair<double, std::string> number_and_unit(const std::string& text, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end == value.c_str() || !(number > 0))
    refuse(text, "\"" + value + "\" is no number above 0: the ends of a range must be");
  return {number, end};
}

std::vector<std::string> range_of(const std::string& text, const std::string& from,
                                  const std::string& to) {
  const auto [least, unit] = number_and_unit(text, from);
  const auto [most, other] = number_and_unit(text, to);
  if (unit != other) refuse(text, "\"" + unit + "\" and \"" + other + "\" are different units");
  std::vector<std::string> values;
  for (double value = least; value <= most * (1 + 1e-9) && values.size() <= kMostValues; value *= 2)
    values.push_back(
        number_text(value, value == static_cast<double>(static_cast<long>(value)) ? 0 : 3) + unit);
  return values;
}

}  // namespace

Variation parse_variation(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse(text, "is not of the form PATH=VALUES");
  Variation variation{text.substr(0, equals), {}};
  const std::string values = text.substr(equals + 1);
  const std::size_t dots = values.find("..");
  if (dots != std::string::npos) {
    variation.values = range_of(text, values.substr(0, dots), values.substr(dots + 2));
  } else {
    for (std::size_t at = 0; at <= values.size();) {
      const std::size_t comma = std::min(values.find(',', at), values.size());
      if (comma > at) variation.values.push_back(values.substr(at, comma - at));
      at = comma + 1;
    }
  }
  if (variation.values.empty()) refuse(text, "has no value");
  return variation;
}

std::vector<Variation> parse_variations(const std::vector<std::string>& texts, std::size_t most) {
  std::vector<Variation> variations;
  std::size_t questions = 1;
  for (const std::string& text : texts) {
    variations.push_back(parse_variation(text));
    questions *= variations.back().values.size();
    if (most > 0 && questions > most)
      refuse(text, "makes more than " + std::to_string(most) + " questions");
  }
  return variations;
}

bool varies_layout(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string& text) { return text.starts_with("layout."); });
}

}  // namespace polyphony::sim
