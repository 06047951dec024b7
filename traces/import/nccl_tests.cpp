#include "traces/import/nccl_tests.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

constexpr const char* kHint = "give the unchanged output of nccl-tests, including its header";
// Relative tolerance: busbw and algbw are printed with three or four digits.
constexpr double kPrinted = 0.02;

std::optional<double> number(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct Collective {
  const char* name;  // as in "all_reduce_perf"
  CollectiveKind kind;
};
constexpr std::array<Collective, 4> kCollectives{
    {{"all_reduce", CollectiveKind::all_reduce},
     {"all_gather", CollectiveKind::all_gather},
     {"reduce_scatter", CollectiveKind::reduce_scatter},
     {"alltoall", CollectiveKind::all_to_all}}};

class Table {
 public:
  explicit Table(const std::string& file) : file_(file) {}

  void read(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      const std::vector<std::string> words = words_of(line);
      if (words.empty()) continue;
      if (words.front().front() == '#')
        read_head(line, words);
      else if (number(words.front()))
        read_row(words);
    }
  }

  CollectiveTimes finish() {
    line_ = 0;
    if (ranks_ < 2)
      fail("its header must list at least 2 ranks (got " + std::to_string(ranks_) + ")");
    if (times_.rows.empty()) fail("it has no rows");
    times_.ranks = ranks_;
    times_.nodes = std::max(1, static_cast<int>(hosts_.size()));
    times_.kind = kind_ ? *kind_ : kind_of_rates();
    return std::move(times_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(line_ > 0 ? file_ + ":" + std::to_string(line_) : file_, "", what, kHint);
  }

  void read_head(const std::string& line, const std::vector<std::string>& words) {
    for (const Collective& collective : kCollectives)
      if (line.find(std::string(collective.name) + "_perf") != std::string::npos)
        kind_ = collective.kind;
    // "#  Rank  0 Group  0 Pid  71 on node-1 device  0 [0x1b] NVIDIA H100"
    if (words.size() < 3 || words[1] != "Rank" || !number(words[2])) return;
    ++ranks_;
    for (std::size_t i = 3; i + 1 < words.size(); ++i)
      if (words[i] == "on") hosts_.insert(words[i + 1]);
  }

  void read_row(const std::vector<std::string>& words) {
    if (words.size() < 9)
      fail("the row has " + std::to_string(words.size()) + " columns, 9 are expected");
    const auto size = number(words[0]), time = number(words[5]), rate = number(words[6]),
               bus = number(words[7]);
    if (!size || !time || !rate || !bus || !(*size >= 0) || !(*time > 0) || !std::isfinite(*time) ||
        *size > 1e15)
      fail(
          "size, time, algbw and busbw are columns 1, 6, 7 and 8; one of them is not a valid "
          "number");
    if (const auto wrong = number(words[8]); wrong && *wrong > 0)
      fail("the test found " + words[8] + " wrong results; its times are not usable");
    times_.rows.push_back({Bytes(std::llround(*size)), Seconds(*time * 1e-6)});
    reduces_ = reduces_ || words[3] != "none";
    if (*rate > fastest_) fastest_ = *rate, factor_ = *bus / *rate;
  }

  CollectiveKind kind_of_rates() const {
    const double share = (ranks_ - 1.0) / ranks_;
    if (reduces_ && std::abs(factor_ / (2 * share) - 1) < kPrinted)
      return CollectiveKind::all_reduce;
    if (reduces_ && std::abs(factor_ / share - 1) < kPrinted) return CollectiveKind::reduce_scatter;
    fail("the header and the rates do not determine the collective");
  }

  std::string file_;
  int line_ = 0, ranks_ = 0;
  std::set<std::string> hosts_;
  std::optional<CollectiveKind> kind_;
  bool reduces_ = false;
  double fastest_ = 0, factor_ = 0;  // busbw ÷ algbw of the row with the highest rate
  CollectiveTimes times_;
};

}  // namespace

CollectiveTimes read_nccl_tests(const std::string& text, const std::string& file) {
  Table table(file);
  table.read(text);
  return table.finish();
}

}  // namespace polyphony::traces
