#include "shared/text/figure_text.h"

#include <cmath>
#include <cstdio>

namespace polyphony {

std::string number_text(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string seconds_text(Seconds time) {
  const double s = time.count();
  if (std::abs(s) >= 1) return number_text(s, s >= 100 ? 1 : 2) + " s";
  if (std::abs(s) >= 1e-3) return number_text(s * 1e3, s >= 0.1 ? 1 : 2) + " ms";
  return number_text(s * 1e6, 1) + " us";
}

std::string bytes_text(Bytes bytes) {
  const auto value = static_cast<double>(bytes.value);
  if (value >= 1 << 30) return number_text(value / (1 << 30), 1) + " GiB";
  if (value >= 1 << 20) return number_text(value / (1 << 20), 1) + " MiB";
  return number_text(value / 1024, 1) + " KiB";
}

std::string percent_text(double share, int digits) {
  return number_text(share * 100, digits) + " %";
}

std::string count_text(std::int64_t value) {
  std::string digits = std::to_string(value), out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') out += ',';
    out += digits[i];
  }
  return out;
}

std::string signed_percent_text(double share) {
  return (share >= 0 ? "+" : "") + percent_text(share);
}

std::string counted(std::int64_t value, const std::string& one, const std::string& several) {
  return count_text(value) + " " + (value == 1 ? one : several);
}

}  // namespace polyphony
