// Figures as people read them in answers, messages and tables. Never parsed back: for that,
// shared/text/quantity_text.h.
#pragma once

#include <cstdint>
#include <string>

#include "shared/units.h"

namespace polyphony {

std::string seconds_text(Seconds time);                  // "1.23 s", "45.6 ms", "7.89 us"
std::string bytes_text(Bytes bytes);                     // "71.2 GiB"
std::string percent_text(double share, int digits = 1);  // "12.3 %"
std::string signed_percent_text(double share);           // "+12.3 %"
std::string number_text(double value, int digits);
std::string count_text(std::int64_t value);  // "12,345"
// "1 layout", "27 layouts": the plural where `value` is not one.
std::string counted(std::int64_t value, const std::string& one, const std::string& several);

}  // namespace polyphony
