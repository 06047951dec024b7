// Monitors a running job against its prediction: whether, when and in which phase its steps leave
// the predicted interval.
//   left      kStepsToTell of kWindow consecutive steps of the log lie outside the 90 % interval,
//             on the same side. The event is dated at the first of them. The interval covers the
//             error of the prediction, which is the same in every step, so a job stays inside or
//             outside.
//   back      kStepsToTell of kWindow steps are inside again
//   phase     the phase that deviates most from its prediction over those steps, if the log has
//             times of phases
//   drifted   a change against the job's own earlier steps: CUSUM of x = (ln t - ln median) / σ,
//             with median and σ (1.4826 MAD, at least 1 %) of the first kBaseline steps after
//             warm-up (traces/evidence/steady_steps.h). x is clipped to ±3, so single checkpoints
//             do not count. Alarm when S = max(0, S ± x - kSlack) exceeds kAlarm. The event is
//             dated where S last was zero, and a new baseline begins there
//   warm-up   as in any log, but only among the first kBaseline steps
//   slow rank its median over the last kWindow steps exceeds the ranks' median by kSlowRank
// Source: E. S. Page, Continuous inspection schemes, Biometrika 41 (1954); slack of half a
// deviation and alarms at several: Montgomery, Introduction to Statistical Quality Control, ch. 9.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/units.h"

namespace polyphony::sim {

using polyphony::name;  // of the enums below

inline constexpr std::size_t kWindow = 10, kStepsToTell = 8, kBaseline = 20;
inline constexpr double kSlack = 0.5, kAlarm = 10;
inline constexpr double kSlowRank = 0.05;

// The prediction for a step, from the output of `polyphony simulate --format json`.
struct Expected {
  Seconds step{}, low{}, high{};
  double tokens_per_second_per_rank = 0;
  std::map<std::string, Seconds> phases;  // of the rank that is busy longest
};
// Throws InputError if the text is not such an answer.
Expected read_expected(const std::string& text, const std::string& file);

struct WatchedStep {
  std::int64_t step = 0;
  Seconds time{};
  std::map<std::string, Seconds> phases;  // with the names of Expected
};
struct WatchEvent {
  enum class What : std::uint8_t { left, back, drifted, slow_rank };
  What what = What::left;
  std::int64_t step = 0;  // when it happened
  std::int64_t told = 0;  // when it was detected
  double ratio = 1;       // measured over predicted, over earlier steps, or over the other ranks
  std::string phase;      // for `left`: the phase that grew most; empty: not known
  int rank = -1;          // for `slow_rank`
};
constexpr auto names(WatchEvent::What) {
  return names_of<WatchEvent::What>("left", "back", "drifted", "slow_rank");
}

struct WatchReport {
  std::size_t steps = 0, warm_up = 0;
  Seconds typical{};               // median of the last kWindow steps
  bool outside = false;            // outside the interval at the end
  std::vector<WatchEvent> events;  // ordered by `told`
  bool left() const;
};
// Evaluates the steps in the order of the log, restarts included. `ranks`: step times of single
// ranks.
WatchReport watch(const Expected& expected, const std::vector<WatchedStep>& steps,
                  const std::map<int, std::vector<Seconds>>& ranks = {});

nlohmann::json to_json(const WatchReport& report, const Expected& expected);
std::string watch_schema();  // of `polyphony watch`

}  // namespace polyphony::sim
