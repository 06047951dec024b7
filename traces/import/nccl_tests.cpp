#include "traces/import/nccl_tests.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "shared/error.h"
#include "shared/text/figure_text.h"

namespace polyphony::traces {
namespace {

constexpr const char* kUnchangedOutput =
    "give the unchanged output of nccl-tests, including its header, or its JSON (-J)";
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

  // The file of `-J`: an object with "args", "devices" and "results".
  void read_json(const std::string& text) {
    try {
      const nlohmann::json whole = nlohmann::json::parse(text);
      if (whole.contains("args") && !whole["args"].empty())
        name_collective(whole["args"].front().get<std::string>());
      for (const nlohmann::json& device : whole.at("devices")) {
        ++ranks_;
        hosts_.insert(device.at("hostname").get<std::string>());
        if (times_.device.empty()) times_.device = device.value("device_info", "");
      }
      for (const nlohmann::json& result : whole.at("results")) {
        if (result.at("out_of_place").is_null()) continue;  // broadcast in place alone
        const nlohmann::json& times = result.at("out_of_place");
        if (times.contains("cpu_time")) refuse_cpu_time();
        const nlohmann::json& wrong = times.at("nwrong");
        add_row(result.at("size").get<double>(), times.at("time").get<double>(),
                times.at("alg_bw").get<double>(), times.at("bus_bw").get<double>(),
                wrong.is_number() ? wrong.get<double>() : 0, result.at("redop").get<std::string>());
      }
    } catch (const nlohmann::json::exception& error) {
      fail(std::string("is not JSON of nccl-tests: ") + error.what());
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
    throw InputError(line_ > 0 ? file_ + ":" + std::to_string(line_) : file_, "", what,
                     kUnchangedOutput);
  }

  void read_head(const std::string& line, const std::vector<std::string>& words) {
    name_collective(line);
    if (std::find(words.begin(), words.end(), "cputime") != words.end()) refuse_cpu_time();
    // "#  Rank  0 Group  0 Pid  71 on node-1 device  0 [0x1b] NVIDIA H100"
    if (words.size() < 3 || words[1] != "Rank" || !number(words[2])) return;
    ++ranks_;
    for (std::size_t i = 3; i + 1 < words.size(); ++i)
      if (words[i] == "on") hosts_.insert(words[i + 1]);
    if (const std::size_t end = line.find("] "); end != std::string::npos && times_.device.empty())
      times_.device = line.substr(end + 2);
  }

  void name_collective(const std::string& text) {
    for (const Collective& collective : kCollectives)
      if (text.find(std::string(collective.name) + "_perf") != std::string::npos)
        kind_ = collective.kind;
  }

  [[noreturn]] void refuse_cpu_time() const { fail("has times of the CPU: run it without -C"); }

  void read_row(const std::vector<std::string>& words) {
    if (words.size() < 9)
      fail("the row has " + std::to_string(words.size()) + " columns, 9 are expected");
    const auto size = number(words[0]), time = number(words[5]), rate = number(words[6]),
               bus = number(words[7]);
    if (!size || !time || !rate || !bus)
      fail("size, time, algbw and busbw are columns 1, 6, 7 and 8; one of them is not a number");
    add_row(*size, *time, *rate, *bus, number(words[8]).value_or(0), words[3]);
  }

  // `time` in microseconds, rates in GB/s.
  void add_row(double size, double time, double rate, double bus, double wrong,
               const std::string& reduction) {
    if (!(size >= 0 && size <= 1e15) || !(time > 0) || !std::isfinite(time) ||
        !std::isfinite(rate) || !std::isfinite(bus))
      fail("size, time, algbw or busbw is not a valid number");
    if (wrong > 0)
      fail("the test found " + number_text(wrong, 0) + " wrong results; its times are not usable");
    times_.rows.push_back({Bytes(std::llround(size)), Seconds(time * 1e-6)});
    reduces_ = reduces_ || reduction != "none";
    if (rate > fastest_) fastest_ = rate, factor_ = bus / rate;
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
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text[begin] == '{')
    table.read_json(text);
  else
    table.read(text);
  return table.finish();
}

}  // namespace polyphony::traces
