// Numbers as text for display, in answers, messages and tables. Texts that are parsed back come
// from shared/text/quantity_text.h.
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
// Returns "1 layout", "27 layouts": `one` if `value` is 1, else `several`.
std::string counted(std::int64_t value, const std::string& one, const std::string& several);

}  // namespace polyphony
