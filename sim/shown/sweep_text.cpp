#include "sim/shown/sweep_text.h"

#include <cmath>
#include <iostream>
#include <set>

#include "sim/console/console.h"
#include "sim/shown/profile_text.h"
#include "sim/sweep/leading.h"

namespace polyphony::sim {
namespace {

std::string count(double number) { return count_text(static_cast<std::int64_t>(number)); }

// "-27 % (-31 to -22)": of the baseline's step.
std::string change_text(const Candidate& c) {
  if (!c.change) return "";
  const auto signed_text = [](double ratio) {
    const double whole = std::round(100 * ratio);
    return (whole > 0 ? "+" : "") + number_text(whole == 0 ? 0 : whole, 0);  // no -0
  };
  std::string text = signed_text(c.change->ratio) + " %";
  if (c.change->interval)
    text += " (" + signed_text(c.change->interval->first) + " to " +
            signed_text(c.change->interval->second) + ")";
  return text;
}

// "; it hangs on gemm_efficiency (52%), …": what a measurement of it, or of the layouts, would settle.
std::string what_ties(const Sweep& result) {
  constexpr double kWorthSaying = 0.1;
  std::string text;
  for (const auto& [what, share] : result.tied_by)
    if (share >= kWorthSaying)
      text += (text.empty() ? "; it hangs on " : ", ") + what + " (" + percent_text(share, 0) + ")";
  if (!result.tied_by.empty())
    text += result.tied_by.front().first == kModelMisses
                ? ": a few steps of each would settle it"
                : ": a profile measured here would settle it";
  return text;
}

}  // namespace

void print_counts(const Sweep& result, bool details) {
  std::cout << count(result.combinations)
            << " combinations: " << count(static_cast<double>(result.legal))
            << " looked at one by one, " << count(static_cast<double>(result.too_large))
            << " of them too large, " << count(static_cast<double>(result.beaten))
            << " ruled out by their bound; " << count(static_cast<double>(result.estimated))
            << " estimated, " << count(static_cast<double>(result.simulated)) << " simulated\n";
  std::int64_t refused = 0;
  for (const Rejection& r : result.rejected) refused += r.count;
  if (refused > 0 && !details)
    std::cout << "not legal: " << count(static_cast<double>(refused)) << ", for "
              << counted(static_cast<std::int64_t>(result.rejected.size()), "reason", "reasons")
              << " (--details lists them)\n";
  if (details)
    for (const Rejection& r : result.rejected)
      std::cout << "  " << r.count << "x " << name(r.placement) << ": " << r.example << "\n";
  if (result.too_large && (details || result.ranked.empty()))
    std::cout << "  does not fit, nearest: " << result.smallest_misfit.text << ": "
              << result.smallest_misfit.bound.footprint.worst << " needs "
              << bytes_text(result.smallest_misfit.bound.footprint.memory) << "\n";
  if (!result.not_runnable.empty())
    std::cout << "  simulation only: " << result.not_runnable << "\n";
  for (const std::string& failure : result.failed) std::cout << "  FAILED " << failure << "\n";
}

void print_ranking(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
                   const RankingOptions& options) {
  const auto words = [&](const Candidate& c) {
    return options.wide ? c.text : brief(scenario.model, c.layout);
  };
  const std::string against = result.baselines.empty() ? "" : "vs " + result.baselines.front().name;
  std::cout << "\n";
  Table table({"#", "step", against, "memory", "layout"});
  std::size_t shown = 0;
  const auto add = [&](const std::string& place, const Candidate& c) {
    table.add({place, (c.simulated ? "" : "~") + seconds_text(c.figures.step), change_text(c),
               bytes_text(c.figures.peak_memory), words(c)});
  };
  // The best of each placement too; near relatives are left to --all.
  const std::vector<bool> leading = leading_rows(result, scenario.model);
  std::set<Placement> placements;
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const Candidate& c = result.ranked[i];
    const bool first = placements.insert(c.layout.placement).second;
    if (((options.all || leading[i]) && shown < options.most) || first) {
      add(std::to_string(i + 1) + (c.tied && result.tied > 1 ? "=" : ""), c);
      ++shown;
    }
  }
  for (const SetBeside& baseline : result.baselines) add("-", baseline.candidate);
  std::cout << table.text();
  for (std::size_t i = 0; i < result.baselines.size(); ++i)
    std::cout << (i ? ", then " : "-: ") << result.baselines[i].name
              << (i + 1 == result.baselines.size() ? "; ~: estimated; *: own split; " : "");
  std::cout << "±" << percent_text(profile.step_error, 0) << " by " << describe(profile) << "\n";
  if (const std::string text = footing_text(profile); !text.empty())
    std::cout << "how sure: " << text << "\n";
  if (result.tied > 1)
    std::cout << result.tied << " layouts are tied (=): what the profile does not know could turn "
              << "their order round; simplest: " << result.simplest + 1 << what_ties(result)
              << "\n";
  for (const auto& [placement, gap] : result.gaps)
    std::cout << name(placement)
              << (gap > 0
                      ? ": a layout not looked at could be up to " + percent_text(gap) + " faster"
                      : ": no combination of the lists has a smaller estimate")
              << "\n";
  for (const std::string& line : result.why) std::cout << line << "\n";
}

}  // namespace polyphony::sim
