#include "sim/shown_runs/watch_text.h"

#include "shared/text/figure_text.h"

namespace polyphony::sim {

std::string event_text(const WatchEvent& event) {
  const std::string step = "step " + std::to_string(event.step),
                    known = " (detected at step " + std::to_string(event.told) + ")";
  switch (event.what) {
    case WatchEvent::What::left:
      return step + ": LEFT the predicted interval, " + signed_percent_text(event.ratio - 1) +
             " compared with the prediction" +
             (event.phase.empty() ? "" : ", mostly in phase " + event.phase) + known;
    case WatchEvent::What::back:
      return step + ": back in the predicted interval, " + signed_percent_text(event.ratio - 1) +
             " compared with the prediction" + known;
    case WatchEvent::What::drifted:
      return step + ": " + signed_percent_text(event.ratio - 1) +
             " compared with its own earlier steps" + known;
    case WatchEvent::What::slow_rank:
      return step + ": rank " + std::to_string(event.rank) + " is slow, " +
             signed_percent_text(event.ratio - 1) + " compared with the ranks' median";
  }
  return "";
}

std::string watch_text(const WatchReport& report, const Expected& expected) {
  const std::string side =
      report.left() ? (report.outside ? "outside" : "back inside, after it had left") : "inside";
  return counted(static_cast<std::int64_t>(report.steps), "step", "steps") + ", " +
         std::to_string(report.warm_up) + " of warm-up left out; the last ten take " +
         seconds_text(report.typical) + ", predicted " + seconds_text(expected.step) +
         " (90 % interval " + seconds_text(expected.low) + " to " + seconds_text(expected.high) +
         ")\n" + side + "\n";
}

}  // namespace polyphony::sim
