#include "shared/data/distribution_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "shared/error.h"

namespace polyphony {
namespace {

constexpr const char* kExamples =
    "write a number, \"uniform(0,3)\", \"lognormal(5,1)\" or \"lognormal(5,1,16,4096)\"";
constexpr double kMostDrawn = 1 << 30;

[[noreturn]] void refuse(const std::string& what, const std::string& hint = kExamples) {
  throw InputError("", "", what, hint);
}

// Returns the numbers of "name(a, b, …)", or nothing if the text has another form.
std::optional<std::vector<double>> arguments(const std::string& text, const std::string& name) {
  if (!text.starts_with(name + "(") || !text.ends_with(")")) return std::nullopt;
  std::vector<double> values;
  const char* at = text.data() + name.size() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (true) {
    while (at != end && *at == ' ') ++at;
    double value = 0;
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
    values.push_back(value);
    at = parsed.ptr;
    while (at != end && *at == ' ') ++at;
    if (at == end) return values;
    if (*at++ != ',' || values.size() == 4) return std::nullopt;
  }
}

std::int32_t count_of(double value, const std::string& text) {
  if (value < 0 || value > kMostDrawn || value != std::floor(value))
    refuse(text + ": the limits must be integers from 0 to 2^30");
  return static_cast<std::int32_t>(value);
}

std::string digits(double value) {
  std::array<char, 32> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                     value);  // shortest text that reads back as `value`
  return {buffer.data(), written.ptr};
}

}  // namespace

Distribution constant(std::int64_t value) {
  Distribution result;
  result.a = static_cast<double>(value);
  return result;
}

bool is_open(const Distribution& distribution) {
  return distribution.kind == Distribution::Kind::lognormal &&
         distribution.high == Distribution{}.high;
}

std::int64_t largest(const Distribution& distribution) {
  switch (distribution.kind) {
    case Distribution::Kind::constant:
      return std::llround(distribution.a);
    case Distribution::Kind::uniform:
      return std::llround(distribution.b);
    case Distribution::Kind::lognormal:
      return distribution.high;
  }
  return 0;
}

Distribution parse_distribution(const std::string& text) {
  const std::string shown = text.size() > 60 ? "the text" : "\"" + text + "\"";
  Distribution result;
  if (const auto uniform = arguments(text, "uniform")) {
    if (uniform->size() != 2) refuse(shown + ": uniform needs two numbers, low and high");
    result.kind = Distribution::Kind::uniform;
    result.low = count_of((*uniform)[0], shown);
    result.high = count_of((*uniform)[1], shown);
    if (result.low > result.high) refuse(shown + ": low must not be above high");
    result.a = result.low;
    result.b = result.high;
    return result;
  }
  if (const auto lognormal = arguments(text, "lognormal")) {
    if (lognormal->size() != 2 && lognormal->size() != 4)
      refuse(shown + ": lognormal needs mu and sigma, and optionally low and high");
    result.kind = Distribution::Kind::lognormal;
    result.a = (*lognormal)[0];
    result.b = (*lognormal)[1];
    if (std::abs(result.a) > 20)
      refuse(shown + ": mu is a natural logarithm and must be from -20 to 20",
             "the median is exp(mu): ln 400 = 6");
    if (result.b < 0 || result.b > 5) refuse(shown + ": sigma must be from 0 to 5");
    if (lognormal->size() == 4) {
      result.low = count_of((*lognormal)[2], shown);
      result.high = count_of((*lognormal)[3], shown);
      if (result.low > result.high) refuse(shown + ": low must not be above high");
    }
    return result;
  }
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    refuse(shown + " is not a distribution");
  return constant(count_of(value, shown));
}

std::string to_text(const Distribution& distribution) {
  switch (distribution.kind) {
    case Distribution::Kind::constant:
      return digits(distribution.a);
    case Distribution::Kind::uniform:
      return "uniform(" + digits(distribution.a) + "," + digits(distribution.b) + ")";
    case Distribution::Kind::lognormal:
      break;
  }
  std::string text = "lognormal(" + digits(distribution.a) + "," + digits(distribution.b);
  if (!is_open(distribution))
    text += "," + std::to_string(distribution.low) + "," + std::to_string(distribution.high);
  return text + ")";
}

}  // namespace polyphony
