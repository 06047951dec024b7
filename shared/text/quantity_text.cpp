#include "shared/text/quantity_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "shared/error.h"

namespace polyphony {
namespace {

struct Unit {
  const char* name;
  double scale;  // value of one unit in base units: s, B, B/s, FLOP/s, USD/GPUh
};

constexpr double kKi = 1024, kMi = kKi * kKi, kGi = kKi * kMi, kTi = kKi * kGi;
// Smallest first; of several spellings of a scale, the first one is printed.
constexpr std::array kTimes = {Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3},
                               Unit{"s", 1},     Unit{"min", 60},  Unit{"h", 3600}};
constexpr std::array kBytes = {
    Unit{"B", 1},    Unit{"kB", 1e3},  Unit{"KiB", kKi}, Unit{"MB", 1e6},  Unit{"MiB", kMi},
    Unit{"GB", 1e9}, Unit{"GiB", kGi}, Unit{"TB", 1e12}, Unit{"TiB", kTi}, Unit{"PB", 1e15}};
constexpr std::array kRates = {
    Unit{"Bps", 1},          Unit{"kBps", 1e3},       Unit{"MBps", 1e6},
    Unit{"GBps", 1e9},       Unit{"TBps", 1e12},      Unit{"B/s", 1},
    Unit{"kB/s", 1e3},       Unit{"MB/s", 1e6},       Unit{"GB/s", 1e9},
    Unit{"TB/s", 1e12},      Unit{"KiB/s", kKi},      Unit{"MiB/s", kMi},
    Unit{"GiB/s", kGi},      Unit{"kbps", 1e3 / 8},   Unit{"Mbps", 1e6 / 8},
    Unit{"Gbps", 1e9 / 8},   Unit{"Tbps", 1e12 / 8},  Unit{"kbit/s", 1e3 / 8},
    Unit{"Mbit/s", 1e6 / 8}, Unit{"Gbit/s", 1e9 / 8}, Unit{"Tbit/s", 1e12 / 8}};
constexpr std::array kComputeRates = {
    Unit{"FLOPS", 1},      Unit{"FLOP/s", 1},    Unit{"MFLOPS", 1e6},  Unit{"GFLOPS", 1e9},
    Unit{"TFLOPS", 1e12},  Unit{"PFLOPS", 1e15}, Unit{"MFLOP/s", 1e6}, Unit{"GFLOP/s", 1e9},
    Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}};
constexpr std::int64_t kMostBytes =
    4'000'000'000'000'000'000;  // below 2^62, so that sums of two still fit
constexpr std::array kPrices = {Unit{"USD/GPUh", 1}};
constexpr std::array kPowers = {Unit{"W", 1}, Unit{"kW", 1e3}, Unit{"MW", 1e6}};

struct Units {
  const Unit* begin;
  const Unit* end;
  const char* what;
  const char* example;
};

Units units(UnitKind kind) {
  switch (kind) {
    case UnitKind::time:
      return {kTimes.begin(), kTimes.end(), "a time", "3.2us"};
    case UnitKind::bytes:
      return {kBytes.begin(), kBytes.end(), "a number of bytes", "80GiB"};
    case UnitKind::rate:
      return {kRates.begin(), kRates.end(), "a data rate", "400Gbps"};
    case UnitKind::compute_rate:
      return {kComputeRates.begin(), kComputeRates.end(), "a compute rate", "989TFLOPS"};
    case UnitKind::price:
      return {kPrices.begin(), kPrices.end(), "a price", "2.50USD/GPUh"};
    case UnitKind::power:
      return {kPowers.begin(), kPowers.end(), "a power", "700W"};
  }
  return {nullptr, nullptr, "?", "?"};
}

// Lists one spelling of each unit: "GBps", but not "GB/s".
std::string list_of(const Units& all) {
  std::string text;
  for (const Unit* unit = all.begin; unit != all.end; ++unit) {
    const std::string unit_name = unit->name;
    const bool other_spelling = unit_name.ends_with("/s");
    if (!other_spelling) text += (text.empty() ? "" : ", ") + unit_name;
  }
  return text;
}

// Returns a user's text for a message: shortened and printable.
std::string in_quotes(const std::string& text) {
  std::string shown = "\"";
  for (std::size_t i = 0; i < text.size() && i < 40; ++i)
    shown += text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
  return shown + (text.size() > 40 ? "…\"" : "\"");
}

double parse(UnitKind kind, const std::string& text) {
  const Units all = units(kind);
  const std::string is_not = in_quotes(text) + " is not " + all.what;
  const std::string example = std::string("write it like \"") + all.example + "\"";
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc::result_out_of_range || !std::isfinite(number))
    throw InputError("", "", is_not, "the number is out of range");
  if (parsed.ec != std::errc()) throw InputError("", "", is_not, example);
  std::string unit_name(parsed.ptr, end);
  if (unit_name.starts_with(' ')) unit_name.erase(0, 1);
  if (unit_name.empty())
    throw InputError("", "", in_quotes(text) + " has no unit",
                     example + "; units: " + list_of(all));
  if (number < 0)
    throw InputError("", "", in_quotes(text) + " is negative", "it must be 0 or more");
  for (const Unit* unit = all.begin; unit != all.end; ++unit) {
    if (unit_name != unit->name) continue;
    const double value = number * unit->scale;
    if (!std::isfinite(value)) throw InputError("", "", is_not, "the number is out of range");
    return value;
  }
  throw InputError("", "", is_not + ": unknown unit " + in_quotes(unit_name),
                   "units: " + list_of(all));
}

std::string digits(double value, int precision) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*g", precision, value);
  return buffer.data();
}

// Returns the shortest text that parses to exactly `value`, over all units; one in the base unit
// always exists. Ties go to the unit listed first.
std::string shortest(UnitKind kind, double value) {
  const Units all = units(kind);
  std::string best;
  for (const Unit* unit = all.begin; unit != all.end; ++unit) {
    std::array<char, 32> buffer{};
    const auto written =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value / unit->scale);
    const std::string text = std::string(buffer.data(), written.ptr) + unit->name;
    if (parse(kind, text) == value && (best.empty() || text.size() < best.size())) best = text;
  }
  POLYPHONY_CHECK(!best.empty(), "no text for " << value);
  return best;
}

// Returns three significant digits, in the largest of the units `names` in which the value is at
// least 1.
std::string three_digits(UnitKind kind, double value, const std::vector<std::string>& names) {
  const Units all = units(kind);
  std::string text;
  for (const std::string& wanted : names) {
    for (const Unit* unit = all.begin; unit != all.end; ++unit) {
      if (wanted != unit->name) continue;
      if (text.empty() || std::abs(value) >= unit->scale) {
        const double scaled = value / unit->scale;
        text = std::abs(scaled) >= 1000 ? digits(scaled, 4) : digits(scaled, 3);
        text += unit->name;
      }
    }
  }
  return text;
}

}  // namespace

Seconds parse_seconds(const std::string& text) { return Seconds(parse(UnitKind::time, text)); }

Bytes parse_bytes(const std::string& text) {
  // A whole number of bytes is read as an integer: above 2^53 a double would round it.
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, whole);
  if (parsed.ec == std::errc() && std::string(parsed.ptr, end) == "B" && whole >= 0 &&
      whole <= kMostBytes)
    return Bytes(whole);
  const double value = parse(UnitKind::bytes, text);
  if (value > static_cast<double>(kMostBytes))
    throw InputError("", "", in_quotes(text) + " is too large", "at most 4000000TB");
  return Bytes(std::llround(value));
}

BytesPerSecond parse_rate(const std::string& text) {
  return BytesPerSecond(parse(UnitKind::rate, text));
}

FlopsPerSecond parse_compute_rate(const std::string& text) {
  return FlopsPerSecond(parse(UnitKind::compute_rate, text));
}

double parse_price(const std::string& text) { return parse(UnitKind::price, text); }
Watts parse_power(const std::string& text) { return Watts(parse(UnitKind::power, text)); }

double parse_quantity(UnitKind kind, const std::string& text) {
  return kind == UnitKind::bytes ? static_cast<double>(parse_bytes(text).value) : parse(kind, text);
}

std::string to_text(Seconds value) { return shortest(UnitKind::time, value.count()); }
std::string to_text(BytesPerSecond value) { return shortest(UnitKind::rate, value.value); }
std::string to_text(FlopsPerSecond value) { return shortest(UnitKind::compute_rate, value.value); }
std::string to_text(Watts value) { return shortest(UnitKind::power, value.value); }
std::string price_text(double value) { return shortest(UnitKind::price, value); }
std::string to_text(Bytes value) {
  // Above 2^53 a double may not be exact: print the integer itself.
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (value.value < kExact) return shortest(UnitKind::bytes, static_cast<double>(value.value));
  return std::to_string(value.value) + "B";
}

std::string short_text(Seconds value) {
  return three_digits(UnitKind::time, value.count(), {"ns", "us", "ms", "s"});
}
std::string short_text(Bytes value) {
  return three_digits(UnitKind::bytes, static_cast<double>(value.value),
                      {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::vector<std::string> unit_names(UnitKind kind) {
  const Units all = units(kind);
  std::vector<std::string> names;
  for (const Unit* unit = all.begin; unit != all.end; ++unit) names.emplace_back(unit->name);
  return names;
}

const char* name(UnitKind kind) { return units(kind).what; }

}  // namespace polyphony
