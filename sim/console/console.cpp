#include "sim/console/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace polyphony::sim {
namespace {

constexpr std::size_t kGap = 2;  // between columns

// "1f1b" is a name: a digit and then a small letter, which is no exponent. "1GBps" is a number.
bool is_number(const std::string& cell) {
  if (cell.size() > 1 && std::isdigit(static_cast<unsigned char>(cell[0])) &&
      std::islower(static_cast<unsigned char>(cell[1])) && cell[1] != 'e')
    return false;
  return !cell.empty() &&
         (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '+' || cell[0] == '~' ||
          (cell[0] == '-' && cell.size() > 1 && std::isdigit(static_cast<unsigned char>(cell[1]))));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  if (lines.empty()) lines.emplace_back();
  return lines;
}

constexpr std::size_t kLeastColumns = 40, kUsualColumns = 80;

// Columns of the terminal that the file is; 0: it is none.
std::size_t terminal_columns(int file) {
  winsize size{};
  if (isatty(file) == 0) return 0;
  if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<std::size_t>(kLeastColumns, size.ws_col);
  return kUsualColumns;
}

std::string without_end(const std::string& line) {
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

// "%", "GiB", "ms" and the like, which stay on the line of the number before them.
bool is_unit(const std::string& word) {
  if (word.front() == '%') return true;
  const std::string letters = word.substr(0, word.find_first_of(".,:;)"));
  for (const char* unit : {"KiB", "MiB", "GiB", "us", "ms", "s"})
    if (letters == unit) return true;
  return false;
}

// The words of a text; a number and its unit are one.
std::vector<std::string> unbroken(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> found;
  for (std::string word; words >> word;) {
    const bool number =
        !found.empty() && std::isdigit(static_cast<unsigned char>(found.back().back())) != 0;
    if (number && is_unit(word))
      found.back() += " " + word;
    else
      found.push_back(word);
  }
  return found;
}

std::string with_breaks(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::size_t screen_columns() {
  if (const std::size_t columns = terminal_columns(STDOUT_FILENO)) return columns;
  const char* columns = std::getenv("COLUMNS");
  const int given = columns ? std::atoi(columns) : 0;
  return given > 0 ? std::max(kLeastColumns, static_cast<std::size_t>(given)) : kUsualColumns;
}

// UTF-8 continuation bytes take no column.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent) {
  std::string out, line;
  for (const std::string& word : unbroken(text)) {
    if (!line.empty() && width_of(line) + 1 + width_of(word) > columns) {
      out += without_end(line) + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line;
}

std::string message_line(const std::string& text) {
  const std::size_t columns = terminal_columns(STDERR_FILENO);
  return (columns > 0 ? wrapped(text, columns, 2) : text) + "\n";
}

std::string paragraph(const std::string& text) { return wrapped(text, screen_columns(), 2) + "\n"; }

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::size_t c = 0; c < rows_[r].size(); ++c)
      for (const std::string& line : lines_of(rows_[r][c]))
        widths[c] = std::max(widths[c], width_of(line));
  return widths;
}

std::vector<std::string> Table::lines(const std::vector<std::size_t>& columns) const {
  const std::vector<std::size_t> wide = widths();
  std::vector<std::string> out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const bool blank = std::all_of(columns.begin(), columns.end(), [&](std::size_t c) {
      return c >= rows_[r].size() || rows_[r][c].empty();
    });
    if (blank && r > 0 && columns.size() < wide.size()) continue;  // its text is in another table
    std::size_t height = 1;
    for (const std::size_t c : columns)
      if (c < rows_[r].size()) height = std::max(height, lines_of(rows_[r][c]).size());
    for (std::size_t h = 0; h < height; ++h) {
      std::string line;
      for (const std::size_t c : columns) {
        if (c >= rows_[r].size()) continue;
        const std::vector<std::string> cell = lines_of(rows_[r][c]);
        const std::size_t above = height - cell.size();  // short headers stand at the bottom
        const std::string text = h >= above ? cell[h - above] : "";
        const bool numbers =
            rows_.size() > 1 && c < rows_[1].size() && is_number(rows_[r == 0 ? 1 : r][c]);
        const std::string space(wide[c] - width_of(text), ' ');
        line += (line.empty() && c == columns.front() ? "" : std::string(kGap, ' ')) +
                (numbers ? space + text : text + space);
      }
      out.push_back(without_end(line));
    }
    if (r > 0) continue;
    std::size_t total = 0;
    for (const std::size_t c : columns) total += wide[c] + kGap;
    out.emplace_back(total - kGap, '-');
  }
  return out;
}

std::string Table::text() const {
  std::vector<std::size_t> all;
  for (std::size_t c = 0; c < rows_.front().size(); ++c) all.push_back(c);
  return with_breaks(lines(all));
}

std::string Table::text(std::size_t columns) const {
  const std::vector<std::size_t> wide = widths();
  std::vector<std::vector<std::size_t>> parts{{0}};
  std::size_t taken = wide[0];
  for (std::size_t c = 1; c < wide.size(); ++c) {
    if (taken + kGap + wide[c] > columns && parts.back().size() > 1) {
      parts.push_back({0});
      taken = wide[0];
    }
    parts.back().push_back(c);
    taken += kGap + wide[c];
  }
  std::string out;
  for (const std::vector<std::size_t>& part : parts)
    out += (out.empty() ? "" : "\n") + with_breaks(lines(part));
  return out;
}

std::string Table::text_with(const std::string& title, const std::vector<std::string>& texts,
                             std::size_t columns) const {
  constexpr std::size_t kIndent = 6;
  const std::vector<std::size_t> wide = widths();
  std::size_t left = 0, longest = width_of(title);
  for (const std::size_t width : wide) left += width + kGap;
  for (const std::string& text : texts) longest = std::max(longest, width_of(text));
  if (left + longest <= columns) {
    Table whole = *this;
    whole.rows_.front().push_back(title);
    for (std::size_t r = 1; r < whole.rows_.size(); ++r) whole.rows_[r].push_back(texts[r - 1]);
    return whole.text();
  }
  std::vector<std::size_t> all;
  for (std::size_t c = 0; c < wide.size(); ++c) all.push_back(c);
  const std::vector<std::string> table = lines(all);
  const std::size_t head = table.size() - (rows_.size() - 1);  // rows are one line each
  std::string out;
  for (std::size_t i = 0; i < table.size(); ++i) {
    out += table[i] + "\n";
    if (i < head) continue;
    const std::string indented = std::string(kIndent, ' ');
    out += indented + wrapped(texts[i - head], columns - kIndent, kIndent + 2) + "\n";
  }
  return out;
}

Progress::Progress(std::string label)
    : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::show(double share, const std::string& detail) {
  constexpr int kWidth = 30;
  constexpr double kEverySeconds = 10;  // a line, off a terminal
  // The time left is extrapolated from the share done: printed once that means something.
  constexpr double kTellingShare = 0.05, kTellingSeconds = 2;
  const auto now = Clock::now();
  const double passed = std::chrono::duration<double>(now - begun_).count();
  std::string left;
  if (share >= kTellingShare && share < 1 && passed > kTellingSeconds)
    left = ", about " + seconds_text(Seconds(passed * (1 - share) / share)) + " left";
  if (!terminal_) {
    if (std::chrono::duration<double>(now - printed_).count() < kEverySeconds) return;
    printed_ = now;
    std::fprintf(stderr, "%s: %.0f s, %.0f %% done%s%s%s\n", label_.c_str(), passed, share * 100,
                 left.c_str(), detail.empty() ? "" : ", ", detail.c_str());
    return;
  }
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\r\033[K%s [%s] %3.0f%% %s%s", label_.c_str(), bar.c_str(), share * 100,
               detail.c_str(), left.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace polyphony::sim
