#include "shared/text/number_text.h"

#include <cmath>
#include <cstdlib>

namespace polyphony {

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(number)) return {};
  return number;
}

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace polyphony
