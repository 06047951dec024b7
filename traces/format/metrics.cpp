#include "traces/format/metrics.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "shared/fnv.h"

namespace polyphony::traces {
namespace {

using nlohmann::json;

constexpr std::string_view kCheck = ",\"check\":\"";

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
double number(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::string digits(std::string_view body) {
  Fnv check;
  check.add(body);
  return check.digits();
}

json body_of(const StepMetrics& step) {
  json body = {{"step", step.step},
               {"loss", number(step.loss)},
               {"gradient_norm", number(step.gradient_norm)},
               {"skipped", step.skipped},
               {"learning_rate", step.learning_rate},
               {"seconds", step.seconds.count()},
               {"samples_per_second", step.samples_per_second}};
  body["waited"] = step.waited.count();
  if (step.saving.count() > 0) body["saving"] = step.saving.count();
  if (step.late_plan) body["late_plan"] = *step.late_plan;
  if (!step.why.empty()) body["why"] = step.why;
  return body;
}
json body_of(const Accuracy& accuracy) {
  json body = {
      {"step", accuracy.step}, {"accuracy", accuracy.share}, {"held_out", accuracy.held_out}};
  if (accuracy.loss) body["held_out_loss"] = number(*accuracy.loss);
  return body;
}
json body_of(const Rewind& rewind) {
  return {{"step", rewind.step},
          {"rewind", rewind.number},
          {"from", rewind.from},
          {"passed_over", rewind.passed_over},
          {"why", rewind.why}};
}

std::int64_t step_of(const MetricsLine& line) {
  return std::visit([](const auto& l) { return l.step; }, line);
}

std::string missing(std::int64_t from, std::int64_t to) {
  if (from == to) return "step " + std::to_string(from) + " is missing";
  return "steps " + std::to_string(from) + " to " + std::to_string(to) + " are missing";
}

}  // namespace

std::string to_line(const MetricsLine& line) {
  std::string body = std::visit([](const auto& l) { return body_of(l); }, line).dump();
  body.pop_back();  // the closing brace
  const std::string check = digits(body);
  return body.append(kCheck).append(check).append("\"}");
}

std::optional<MetricsLine> parse_metrics_line(const std::string& text) {
  const std::size_t at = text.rfind(kCheck);
  if (at == std::string::npos ||
      text.substr(at) != std::string(kCheck) + digits(text.substr(0, at)) + "\"}")
    return {};
  const json value = json::parse(text, nullptr, false);
  try {
    if (value.contains("accuracy")) {
      Accuracy accuracy{value.at("step").get<std::int64_t>(), value.at("accuracy").get<double>(),
                        value.at("held_out").get<int>()};
      if (value.contains("held_out_loss")) accuracy.loss = number(value.at("held_out_loss"));
      return accuracy;
    }
    if (value.contains("rewind"))
      return Rewind{value.at("step").get<std::int64_t>(), value.at("rewind").get<std::int64_t>(),
                    value.at("from").get<std::int64_t>(),
                    value.at("passed_over").get<std::int64_t>(),
                    value.at("why").get<std::string>()};
    StepMetrics step{
        value.at("step").get<std::int64_t>(),        number(value.at("loss")),
        number(value.at("gradient_norm")),           value.at("skipped").get<bool>(),
        value.at("learning_rate").get<double>(),     Seconds(value.at("seconds").get<double>()),
        value.at("samples_per_second").get<double>()};
    if (value.contains("late_plan")) step.late_plan = value.at("late_plan").get<bool>();
    if (value.contains("waited")) step.waited = Seconds(value.at("waited").get<double>());
    if (value.contains("saving")) step.saving = Seconds(value.at("saving").get<double>());
    if (value.contains("why")) step.why = value.at("why").get<std::string>();
    return step;
  } catch (const json::exception&) {
    return {};  // valid hash, but not written by this program
  }
}

Metrics parse_metrics(const std::string& text) {
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  return metrics_until(text, kAll, kAll);
}

Metrics metrics_until(const std::string& text, std::int64_t steps, std::int64_t rewinds) {
  Metrics metrics;
  std::int64_t next = 0;  // step
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // truncated
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const std::optional<MetricsLine> parsed = parse_metrics_line(line);
    if (!parsed) {
      metrics.damage.push_back("line " + std::to_string(number) + " is damaged");
      continue;
    }
    const bool of_step = std::holds_alternative<StepMetrics>(*parsed);
    const std::int64_t step = step_of(*parsed);
    const auto* rewind = std::get_if<Rewind>(&*parsed);
    if (step > steps || (of_step && step == steps) || (rewind && rewind->number > rewinds))
      continue;
    if (of_step && step > next) metrics.damage.push_back(missing(next, step - 1));
    if (of_step && step < next) {
      metrics.damage.push_back("line " + std::to_string(number) + " repeats step " +
                               std::to_string(step));
      continue;
    }
    if (of_step) next = step + 1;
    metrics.lines.push_back(*parsed);
    metrics.text += line + '\n';
  }
  if (steps != std::numeric_limits<std::int64_t>::max() && next < steps)
    metrics.damage.push_back(missing(next, steps - 1));
  return metrics;
}

void BadSteps::add(const MetricsLine& line) {
  if (const auto* step = std::get_if<StepMetrics>(&line); step && step->skipped)
    ++skipped[step->why.empty() ? "non-finite values" : step->why];
  if (const auto* rewind = std::get_if<Rewind>(&line)) ++rewinds[rewind->why];
}

std::string BadSteps::text() const {
  const auto part = [](const std::map<std::string, int>& counts, const char* one,
                       const char* many) -> std::string {
    int all = 0;
    std::string reasons;
    for (const auto& [why, count] : counts) {
      all += count;
      reasons += (reasons.empty() ? "" : ", ") + why + ": " + std::to_string(count);
    }
    if (all == 0) return {};
    return std::to_string(all) + (all == 1 ? one : many) + " (" + reasons + ")";
  };
  const std::string left_out = part(skipped, " step was skipped", " steps were skipped"),
                    back = part(rewinds, " rewind", " rewinds");
  return left_out + (left_out.empty() || back.empty() ? "" : ", ") + back;
}

BadSteps bad_steps_of(const Metrics& metrics) {
  BadSteps counts;
  for (const MetricsLine& line : metrics.lines) counts.add(line);
  return counts;
}

}  // namespace polyphony::traces
