// A running job beside its prediction: whether, when and in which phase it leaves the predicted interval.
//   left      kOutside of kWindow steps in a row of the log lie outside the 90 % interval, on one side; it
//             happened at the first of them. The interval holds what the prediction may be off by, which is
//             the same in every step: a job stays inside or does not. Back: kOutside of kWindow inside
//   phase     that grew most against its prediction over those steps, where the log says phases
//   drifted   against its own steps: CUSUM of x = (ln t - ln median) / σ, median and σ (1.4826 MAD, 1 % at
//             least) of the first kBaseline steps after warm-up (traces/evidence/steady_steps.h), x cut at ±3, which
//             makes it deaf to single checkpoints: S = max(0, S ± x - kSlack) beyond kAlarm; it happened where
//             S last was zero, and a new baseline begins there
//   warm-up   as of any log, but among the first kBaseline steps alone
//   slow rank its own median over the last kWindow steps is beyond the ranks' by kSlowRank
// Source: E. S. Page, Continuous inspection schemes, Biometrika 41 (1954); slack of half a deviation and
// alarms at several: Montgomery, Introduction to Statistical Quality Control, ch. 9.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony::sim {

inline constexpr std::size_t kWindow = 10, kOutside = 8, kBaseline = 20;
inline constexpr double kSlack = 0.5, kAlarm = 10;
inline constexpr double kSlowRank = 0.05;

// What `polyphony simulate --format json` says of a step.
struct Expected {
  Seconds step{}, low{}, high{};
  double tokens_per_second_per_rank = 0;
  std::map<std::string, Seconds> phases;  // of the busiest rank
};
// InputError: no such answer.
Expected read_expected(const std::string& text, const std::string& file);

struct WatchedStep {
  std::int64_t step = 0;
  Seconds time{};
  std::map<std::string, Seconds> phases;  // as Expected calls them
};
struct WatchEvent {
  enum class What : std::uint8_t { left, back, drifted, slow_rank };
  What what = What::left;
  std::int64_t step = 0;  // at which it happened
  std::int64_t told = 0;  // at which it was known
  double ratio = 1;       // measured over predicted, over before, or over the other ranks'
  std::string phase;      // of left: that grew most; empty: not said
  int rank = -1;          // of slow_rank
};
const char* name(WatchEvent::What what);

struct WatchReport {
  std::size_t steps = 0, warm_up = 0;
  Seconds typical{};               // median of the last kWindow
  bool outside = false;            // at the end
  std::vector<WatchEvent> events;  // by `told`
  bool left() const;
};
// Steps in the order of the log, restarts and all; `ranks`: times as single ranks have them.
WatchReport watch(const Expected& expected, const std::vector<WatchedStep>& steps,
                  const std::map<int, std::vector<Seconds>>& ranks = {});

std::string event_text(const WatchEvent& event);
std::string watch_json(const WatchReport& report, const Expected& expected);
std::string watch_schema();  // of `polyphony watch`

}  // namespace polyphony::sim
