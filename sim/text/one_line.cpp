#include "sim/text/one_line.h"

namespace polyphony::sim {

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  constexpr std::size_t kMost = 160;
  if (text.size() > kMost) {
    text.resize(kMost);
    text += "...";
  }
  return text;
}

}  // namespace polyphony::sim
