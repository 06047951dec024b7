#include "traces/import/framework_log.h"

#include <algorithm>
#include <array>
#include <set>

#include "shared/error.h"
#include "traces/import/log_lines.h"

namespace polyphony::traces {
namespace {

constexpr const char* kHint =
    "give the log of a run that trained some steps: Megatron-LM's or Megatron-Bridge's lines with "
    "\"elapsed time per iteration (ms)\", torchtitan's with \"tps:\", DeepSpeed's with "
    "\"CurrSamplesPerSec=\" or \"time (ms) | fwd:\"";
constexpr double kMostGarbled = 0.1;  // share of the step lines; assumed

using What = LogLine::What;

struct Reader {
  const std::string& file;
  std::map<int, std::vector<LoggedStep>> steps{};       // by rank
  std::map<int, std::vector<LoggedStep>> step_times{};  // Megatron-Bridge: without a step number
  std::map<int, std::vector<LoggedStep>> breakdowns{};  // DeepSpeed: without a step number
  std::array<int, 3> first_line{};                      // by framework; 0: none
  std::vector<int> garbled{};
  FrameworkLog log{};

  void take_memory(const LogLine& line) {
    if (line.allocated) log.allocated = std::max(log.allocated.value_or(Bytes{}), *line.allocated);
    if (line.reserved) log.reserved = std::max(log.reserved.value_or(Bytes{}), *line.reserved);
  }

  void take(const std::string& text, int number) {
    LogLine line = read_log_line(text);
    if (line.what == What::nothing) return;
    line.step.line = number;
    line.step.rank = rank_of_line(text);
    int& first = first_line[static_cast<std::size_t>(line.framework)];
    if (first == 0 && line.what != What::memory) first = number;
    take_memory(line);
    switch (line.what) {
      case What::nothing:
      case What::memory:
        return;
      case What::garbled:
        garbled.push_back(number);
        return;
      case What::step:
        return steps[line.step.rank].push_back(std::move(line.step));
      case What::step_time:
        return step_times[line.step.rank].push_back(std::move(line.step));
      case What::phases:
        return breakdowns[line.step.rank].push_back(std::move(line.step));
    }
  }

  // Lines without step numbers are counted.
  static std::map<int, std::vector<LoggedStep>> counted(
      std::map<int, std::vector<LoggedStep>> by_rank) {
    for (auto& [rank, list] : by_rank) {
      std::int64_t n = 0;
      for (LoggedStep& step : list) {
        step.step = ++n;
        if (step.phases.empty()) continue;
        step.time = step.phases.at("fwd") + step.phases.at("bwd") + step.phases.at("step");
      }
    }
    return by_rank;
  }

  void choose() {
    const bool megatron = first_line[0] > 0, titan = first_line[1] > 0,
               deepspeed = first_line[2] > 0;
    if (titan && (megatron || deepspeed))
      throw InputError(
          file + ":" + std::to_string(std::max(first_line[1], first_line[megatron ? 0 : 2])), "",
          "contains lines of two frameworks, torchtitan from line " + std::to_string(first_line[1]),
          "give the log of a single run");
    log.framework =
        titan ? Framework::torchtitan : (megatron ? Framework::megatron : Framework::deepspeed);
    if (megatron && deepspeed) {
      // Megatron-DeepSpeed: DeepSpeed's lines repeat the same steps.
      for (auto& [rank, list] : steps)
        std::erase_if(list, [](const LoggedStep& step) { return !step.time; });
      std::erase_if(steps, [](const auto& entry) { return entry.second.empty(); });
    }
    if (steps.empty()) steps = counted(std::move(step_times));
    if (steps.empty())
      steps = counted(std::move(breakdowns));
    else
      add_phases();
  }

  // DeepSpeed prints a breakdown with every step line. The breakdown names its rank and the step
  // line does not: the nth breakdown belongs to the nth step line.
  void add_phases() {
    if (breakdowns.size() != 1 || steps.size() != 1) return;
    std::vector<LoggedStep>&of = steps.begin()->second, &with = breakdowns.begin()->second;
    if (of.size() != with.size()) return;
    for (std::size_t i = 0; i < of.size(); ++i) of[i].phases = std::move(with[i].phases);
  }

  void judge_garbled() {
    if (garbled.empty()) return;
    std::size_t good = 0;
    for (const auto& [rank, list] : steps) good += list.size();
    const auto n = static_cast<double>(garbled.size());
    const std::string where = file + ":" + std::to_string(garbled.front());
    if (n > kMostGarbled * (n + static_cast<double>(good)) && garbled.size() > 1)
      throw InputError(
          where, "",
          std::to_string(garbled.size()) + " of " + std::to_string(garbled.size() + good) +
              " step lines cannot be parsed: they are truncated or mixed with each other",
          kHint);
    std::string lines;
    for (std::size_t i = 0; i < std::min<std::size_t>(garbled.size(), 3); ++i)
      lines += (i ? ", " : "") + std::to_string(garbled[i]);
    log.notes.push_back(file + ": omitted " + std::to_string(garbled.size()) +
                        " garbled step lines: line " + lines + (garbled.size() > 3 ? ", …" : ""));
  }

  // The rank that printed the most lines represents the run; the lowest of them if several.
  void split_ranks() {
    auto most = steps.begin();
    for (auto it = steps.begin(); it != steps.end(); ++it)
      if (it->second.size() > most->second.size()) most = it;
    const int speaker = most->first;
    split_attempts(std::move(most->second));
    for (auto& [rank, list] : steps)
      if (rank != speaker) log.other_ranks[rank] = std::move(list);
  }

  void split_attempts(std::vector<LoggedStep> list) {
    log.attempts.emplace_back();
    for (LoggedStep& step : list) {
      if (!log.attempts.back().empty()) {
        const std::int64_t before = log.attempts.back().back().step;
        if (step.step <= before) {
          log.notes.push_back(file + ":" + std::to_string(step.line) + ": restarted, step " +
                              std::to_string(step.step) + " after " + std::to_string(before));
          log.attempts.emplace_back();
        } else {
          step.steps = step.step - before;
        }
      }
      log.attempts.back().push_back(std::move(step));
    }
  }
};

// A line without a line break may be truncated inside a number, which then has another value.
std::string_view without_last_number(std::string_view line) {
  const std::size_t last = line.find_last_not_of("0123456789.,eE+-");
  return line.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace

FrameworkLog read_framework_log(const std::string& text, const std::string& file) {
  Reader reader{file};
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    reader.take(without_colours(end < text.size() ? line : without_last_number(line)), ++number);
    at = end + 1;
  }
  reader.choose();
  reader.judge_garbled();
  if (reader.steps.empty())
    throw InputError(file, "", "contains no line of a training step", kHint);
  reader.split_ranks();
  return std::move(reader.log);
}

}  // namespace polyphony::traces
