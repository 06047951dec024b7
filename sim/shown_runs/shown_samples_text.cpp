#include "sim/shown_runs/shown_samples_text.h"

#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kLabel = 10;  // columns

// The lines of a text behind its label. A line break is also written as \n, since it is a token.
std::string labeled(const std::string& label, const std::string& text) {
  std::string lines = "  " + label + std::string(kLabel - label.size(), ' ');
  for (const char c : text) {
    if (c == '\n')
      lines += "\\n\n" + std::string(kLabel + 2, ' ');
    else
      lines += c;
  }
  lines.erase(lines.find_last_not_of(' ') + 1);
  if (lines.back() != '\n') lines += "\n";
  return lines;
}

std::string size_of(const ShownPart& part) {
  return part.modality == Modality::image ? counted(part.tokens, "patch", "patches")
                                          : counted(part.tokens, "token", "tokens");
}

}  // namespace

std::string shown_samples_text(const std::vector<ShownSample>& samples) {
  std::string text;
  for (const ShownSample& sample : samples) {
    text += sample.data_set + ", sample " + std::to_string(sample.number) + ": " +
            counted(sample.rows, "token", "tokens") + " of the language module, " +
            count_text(sample.trained()) + " trained\n";
    for (const ShownPart& part : sample.parts)
      text += part.modality == Modality::text
                  ? labeled(part.trained ? "trained" : "read", part.text)
                  : labeled(name(part.modality), size_of(part));
    text += "\n";
  }
  return text;
}

}  // namespace polyphony::sim
