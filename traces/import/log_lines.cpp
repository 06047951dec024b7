#include "traces/import/log_lines.h"

#include <cctype>
#include <charconv>
#include <cmath>

namespace polyphony::traces {
namespace {

constexpr double kMiB = 1 << 20, kGiB = 1 << 30;

bool has(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

// Returns the number that follows `label` and spaces; "5,762" is one number.
std::optional<double> number_after(std::string_view line, std::string_view label) {
  std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  at += label.size();
  while (at < line.size() && line[at] == ' ') ++at;
  std::string digits;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    const bool grouped = c == ',' && !digits.empty() && at + 3 < line.size() &&
                         std::isdigit(static_cast<unsigned char>(line[at + 1])) &&
                         std::isdigit(static_cast<unsigned char>(line[at + 2])) &&
                         std::isdigit(static_cast<unsigned char>(line[at + 3]));
    if (grouped) continue;
    const bool exponent_sign =
        (c == '+' || c == '-') && !digits.empty() && (digits.back() == 'e' || digits.back() == 'E');
    if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.' && c != 'e' && c != 'E' &&
        !exponent_sign && !(digits.empty() && c == '-'))
      break;
    digits.push_back(c);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end == digits.data() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> count_after(std::string_view line, std::string_view label) {
  const auto value = number_after(line, label);
  if (!value || *value < 0 || *value > 1e15 || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<Bytes> bytes_after(std::string_view line, std::string_view label, double unit) {
  const auto value = number_after(line, label);
  if (!value || *value < 0 || *value * unit > 1e15) return std::nullopt;
  return Bytes(std::llround(*value * unit));
}

std::optional<double> positive(std::optional<double> value) {
  return value && *value > 0 ? value : std::nullopt;
}

LogLine garbled(Framework framework) {
  LogLine result;
  result.what = LogLine::What::garbled;
  result.framework = framework;
  return result;
}

LogLine megatron_step(std::string_view line) {
  LogLine result{LogLine::What::step, Framework::megatron, {}, {}, {}};
  const auto milliseconds = positive(number_after(line, "elapsed time per iteration (ms):"));
  // "iteration       10/    1000 |": the first space is part of the label.
  const auto iteration = count_after(line, "iteration ");
  if (!milliseconds || !iteration) return garbled(Framework::megatron);
  LoggedStep& step = result.step;
  step.step = *iteration;
  step.time = Seconds(*milliseconds / 1e3);
  step.teraflops_per_rank = positive(number_after(line, "throughput per GPU (TFLOP/s/GPU):"));
  step.loss = number_after(line, "lm loss:");
  step.global_batch = count_after(line, "global batch size:");
  return result;
}

LogLine bridge_step_time(std::string_view line) {
  LogLine result{LogLine::What::step_time, Framework::megatron, {}, {}, {}};
  const auto seconds = positive(number_after(line, "Step Time :"));
  if (!seconds) return garbled(Framework::megatron);
  result.step.time = Seconds(*seconds);
  result.step.teraflops_per_rank = positive(number_after(line, "GPU utilization:"));
  return result;
}

LogLine megatron_memory(std::string_view line) {
  LogLine result{LogLine::What::memory, Framework::megatron, {}, {}, {}};
  const double unit = has(line, "memory (GB)") ? kGiB : kMiB;
  result.allocated = bytes_after(line, "| max allocated:", unit);
  result.reserved = bytes_after(line, "| max reserved:", unit);
  return result;
}

LogLine torchtitan_step(std::string_view line) {
  LogLine result{LogLine::What::step, Framework::torchtitan, {}, {}, {}};
  const auto step = count_after(line, "step:");
  const auto tokens = positive(number_after(line, "tps:"));
  if (!step || !tokens) return garbled(Framework::torchtitan);
  result.step.step = *step;
  result.step.tokens_per_second_per_rank = tokens;
  result.step.loss = number_after(line, "loss:");
  result.step.teraflops_per_rank = positive(number_after(line, "tflops:"));
  result.reserved = bytes_after(line, "memory:", kGiB);
  return result;
}

LogLine deepspeed_step(std::string_view line) {
  LogLine result{LogLine::What::step, Framework::deepspeed, {}, {}, {}};
  auto step = count_after(line, "global_step=");
  if (!step) step = count_after(line, "0/");  // before 0.8: "0/20, RunningAvgSamplesPerSec="
  const auto rate = positive(number_after(line, "CurrSamplesPerSec="));
  if (!step || !rate) return garbled(Framework::deepspeed);
  result.step.step = *step;
  result.step.samples_per_second = rate;
  result.allocated = bytes_after(line, "MaxMemAllocated=", kGiB);
  return result;
}

LogLine deepspeed_phases(std::string_view line) {
  LogLine result{LogLine::What::phases, Framework::deepspeed, {}, {}, {}};
  constexpr std::string_view kPhases[] = {"fwd", "bwd", "bwd_inner", "bwd_allreduce", "step"};
  for (const std::string_view phase : kPhases)
    if (const auto ms = number_after(line, "| " + std::string(phase) + ":"))
      result.step.phases[std::string(phase)] = Seconds(*ms / 1e3);
  for (const char* part : {"fwd", "bwd", "step"})
    if (!result.step.phases.contains(part)) return garbled(Framework::deepspeed);
  return result;
}

}  // namespace

std::string without_colours(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !std::isalpha(static_cast<unsigned char>(line[i]))) ++i;
      continue;
    }
    if (line[i] != '\r') plain.push_back(line[i]);
  }
  return plain;
}

int rank_of_line(std::string_view line) {
  for (const std::string_view head : {"[rank", "[default", "[Rank "})
    if (const std::size_t at = line.find(head); at != std::string_view::npos)
      if (const auto rank = count_after(line.substr(at), head); rank && *rank < (1 << 24))
        return static_cast<int>(*rank);
  std::size_t digits = 0;
  while (digits < line.size() && digits < 8 &&
         std::isdigit(static_cast<unsigned char>(line[digits])))
    ++digits;
  if (digits == 0 || digits >= line.size() || line[digits] != ':') return -1;
  int rank = -1;
  std::from_chars(line.data(), line.data() + digits, rank);
  return rank;
}

LogLine read_log_line(std::string_view line) {
  if (has(line, "elapsed time per iteration (ms):")) return megatron_step(line);
  if (has(line, "Step Time :")) return bridge_step_time(line);
  if (has(line, "| max allocated:") && has(line, "memory (")) return megatron_memory(line);
  if (has(line, "step:") && has(line, "loss:") && has(line, "memory:"))
    return torchtitan_step(line);
  if (has(line, "SamplesPerSec=")) return deepspeed_step(line);
  if (has(line, "time (ms) | fwd:")) return deepspeed_phases(line);
  if (has(line, "Max_MA")) {
    LogLine result{LogLine::What::memory, Framework::deepspeed, {}, {}, {}};
    result.allocated = bytes_after(line, "Max_MA", kGiB);
    result.reserved = bytes_after(line, "Max_CA", kGiB);
    return result;
  }
  return {};
}

}  // namespace polyphony::traces
