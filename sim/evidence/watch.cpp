#include "sim/evidence/watch.h"

#include <algorithm>
#include <cmath>

#include "traces/compare/spread.h"
#include "traces/evidence/steady_steps.h"

namespace polyphony::sim {
namespace {

constexpr double kToSigma = 1.4826, kLeastSigma = 0.01, kCut = 3;

int side_of(const Expected& expected, Seconds time) {
  return time > expected.high ? 1 : (time < expected.low ? -1 : 0);
}

Seconds median_of(const std::vector<WatchedStep>& steps, std::size_t from, std::size_t to) {
  std::vector<Seconds> times;
  for (std::size_t i = from; i < to; ++i) times.push_back(steps[i].time);
  return traces::median(std::move(times));
}

// Returns the phase whose median over steps [from, to) deviates most from its prediction in the
// direction of `side`.
std::string worst_phase(const Expected& expected, const std::vector<WatchedStep>& steps,
                        std::size_t from, std::size_t to, int side) {
  std::string worst;
  Seconds most{};
  for (const auto& [phase, first] : steps[from].phases) {
    const auto predicted = expected.phases.find(phase);
    std::vector<Seconds> times;
    for (std::size_t i = from; i < to; ++i)
      if (const auto found = steps[i].phases.find(phase); found != steps[i].phases.end())
        times.push_back(found->second);
    const Seconds grown =
        side * (traces::median(std::move(times)) -
                (predicted == expected.phases.end() ? Seconds(0) : predicted->second));
    if (grown > most) most = grown, worst = phase;
  }
  return worst;
}

void watch_interval(const Expected& expected, const std::vector<WatchedStep>& steps,
                    std::size_t begin, WatchReport& report) {
  int outside = 0;  // 1: above the interval, -1: below, 0: inside
  for (std::size_t end = begin + kWindow; end <= steps.size(); ++end) {
    const std::size_t from = end - kWindow;
    std::size_t count[3] = {};  // below, inside, above
    for (std::size_t i = from; i < end; ++i)
      ++count[static_cast<std::size_t>(1 + side_of(expected, steps[i].time))];
    const int now = count[2] >= kStepsToTell   ? 1
                    : count[0] >= kStepsToTell ? -1
                    : count[1] >= kStepsToTell ? 0
                                               : outside;
    if (now == outside) continue;
    std::size_t first = from;
    while (side_of(expected, steps[first].time) != now) ++first;
    WatchEvent event{now == 0 ? WatchEvent::What::back : WatchEvent::What::left,
                     steps[first].step,
                     steps[end - 1].step,
                     median_of(steps, first, end) / expected.step,
                     "",
                     -1};
    if (now != 0) event.phase = worst_phase(expected, steps, first, end, now);
    report.events.push_back(event);
    outside = now;
  }
  report.outside = outside != 0;
}

void watch_drift(const std::vector<WatchedStep>& steps, std::size_t begin, WatchReport& report) {
  while (begin + kBaseline < steps.size()) {
    const Seconds base = median_of(steps, begin, begin + kBaseline);
    std::vector<Seconds> away;
    for (std::size_t i = begin; i < begin + kBaseline; ++i)
      away.emplace_back(std::abs(std::log(steps[i].time / base)));
    const double sigma = std::max(kLeastSigma, kToSigma * traces::median(std::move(away)).count());
    double sum[2] = {};  // slower, faster
    std::size_t since[2] = {begin + kBaseline, begin + kBaseline};
    std::size_t changed = 0;
    for (std::size_t i = begin + kBaseline; i < steps.size() && changed == 0; ++i) {
      const double x = std::clamp(std::log(steps[i].time / base) / sigma, -kCut, kCut);
      for (int side = 0; side < 2; ++side) {
        sum[side] = std::max(0.0, sum[side] + (side == 0 ? x : -x) - kSlack);
        if (sum[side] == 0) since[side] = i + 1;
        if (sum[side] <= kAlarm || changed != 0) continue;
        changed = since[side];
        report.events.push_back({WatchEvent::What::drifted, steps[changed].step, steps[i].step,
                                 median_of(steps, changed, i + 1) / base, "", -1});
      }
    }
    if (changed == 0) return;
    begin = changed;
  }
}

void watch_ranks(const std::map<int, std::vector<Seconds>>& ranks, std::int64_t step,
                 WatchReport& report) {
  std::map<int, Seconds> late;
  std::vector<Seconds> all;
  for (const auto& [rank, times] : ranks) {
    if (times.size() < kWindow) continue;
    late[rank] = traces::median({times.end() - static_cast<std::ptrdiff_t>(kWindow), times.end()});
    all.push_back(late[rank]);
  }
  if (all.size() < 2) return;
  const Seconds typical = traces::median(std::move(all));
  for (const auto& [rank, time] : late)
    if (time > (1 + kSlowRank) * typical)
      report.events.push_back({WatchEvent::What::slow_rank, step, step, time / typical, "", rank});
}

}  // namespace

bool WatchReport::left() const {
  return std::any_of(events.begin(), events.end(),
                     [](const WatchEvent& event) { return event.what == WatchEvent::What::left; });
}

WatchReport watch(const Expected& expected, const std::vector<WatchedStep>& steps,
                  const std::map<int, std::vector<Seconds>>& ranks) {
  WatchReport report;
  report.steps = steps.size();
  std::vector<Seconds> times;
  for (const WatchedStep& step : steps)
    if (times.size() < kBaseline) times.push_back(step.time);
  report.warm_up = traces::warm_up(times);
  if (steps.empty()) return report;
  report.typical = median_of(steps, steps.size() - std::min(kWindow, steps.size()), steps.size());
  watch_interval(expected, steps, report.warm_up, report);
  watch_drift(steps, report.warm_up, report);
  watch_ranks(ranks, steps.back().step, report);
  std::stable_sort(report.events.begin(), report.events.end(),
                   [](const WatchEvent& a, const WatchEvent& b) { return a.told < b.told; });
  return report;
}

}  // namespace polyphony::sim
