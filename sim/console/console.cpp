#include "sim/console/console.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace polyphony::sim {
namespace {

// Characters on the screen: UTF-8 continuation bytes take no column.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// "1f1b" is a name: a digit and a letter beside it, which is no exponent.
bool is_number(const std::string& cell) {
  if (cell.size() > 1 && std::isdigit(static_cast<unsigned char>(cell[0])) &&
      std::isalpha(static_cast<unsigned char>(cell[1])) && cell[1] != 'e')
    return false;
  return !cell.empty() &&
         (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '+' || cell[0] == '~' ||
          (cell[0] == '-' && cell.size() > 1 && std::isdigit(static_cast<unsigned char>(cell[1]))));
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows_[r].size(); ++c) {
      const std::string& cell = rows_[r][c];
      const bool numbers =
          rows_.size() > 1 && c < rows_[1].size() && is_number(rows_[r == 0 ? 1 : r][c]);
      const std::string space(widths[c] - width_of(cell), ' ');
      line += (c ? "  " : "") + (numbers ? space + cell : cell + space);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (r == 0) {
      std::size_t total = 0;
      for (const std::size_t w : widths) total += w + 2;
      out += std::string(total - 2, '-') + "\n";
    }
  }
  return out;
}

Progress::Progress(std::string label)
    : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::show(double share, const std::string& detail) {
  if (!terminal_) return;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                    std::string(static_cast<std::size_t>(kWidth - filled), '.');
  // What is left, as the share goes so far: said once that means something.
  constexpr double kTellingShare = 0.05, kTellingSeconds = 2;
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  std::string left;
  if (share >= kTellingShare && share < 1 && passed > kTellingSeconds)
    left = ", about " + seconds_text(Seconds(passed * (1 - share) / share)) + " left";
  std::fprintf(stderr, "\r\033[K%s [%s] %3.0f%% %s%s", label_.c_str(), bar.c_str(), share * 100,
               detail.c_str(), left.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace polyphony::sim
