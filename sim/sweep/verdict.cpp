#include "sim/sweep/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "shared/search/shortlist.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

// Steps that differ by less than this fraction are described as equally long.
constexpr double kAsLong = 1e-5;

void compare_with_best(const Scenario& scenario, const HardwareProfile& profile, Sweep& result) {
  if (result.ranked.empty()) return;
  const std::size_t errors = profile.certainty.errors.size();
  Candidate& best = result.ranked.front();
  const auto believe = [&](Candidate& c) {
    if (c.effects.size() != errors) return;
    c.belief = make_belief(c.figures.step, c.effects, profile, scenario, c.layout);
    if (&c != &best && best.belief)
      c.difference =
          compare_beliefs(*best.belief, *c.belief, layout_distance(best.layout, c.layout), profile);
  };
  for (Candidate& c : result.ranked) believe(c);
  for (BaselineResult& baseline : result.baselines) believe(baseline.candidate);
}

StepChange change_from(const Candidate& baseline, const Candidate& c,
                       const HardwareProfile& profile) {
  StepChange change{c.figures.step / baseline.figures.step - 1};
  if (!c.belief || !baseline.belief || c.layout == baseline.layout) return change;
  const SecondsInterval more = compare_beliefs(*baseline.belief, *c.belief,
                                               layout_distance(baseline.layout, c.layout), profile)
                                   .seconds;
  change.interval = {more.low / baseline.figures.step, more.high / baseline.figures.step};
  return change;
}

void compare_with_baseline(const HardwareProfile& profile, Sweep& result) {
  if (result.baselines.empty()) return;
  const Candidate baseline = result.baselines.front().candidate;
  for (Candidate& c : result.ranked) c.change = change_from(baseline, c, profile);
  for (BaselineResult& other : result.baselines)
    other.candidate.change = change_from(baseline, other.candidate, profile);
}

// Sums up by cause the variances of the differences between the tied candidates and the best.
void find_what_ties(const HardwareProfile& profile, Sweep& result) {
  std::map<std::string, double> sums;
  double all = 0;
  const Candidate& best = result.ranked.front();
  for (const Candidate& c : result.ranked) {
    if (!c.tied || !c.difference || !best.belief) continue;
    const std::vector<double> parts =
        difference_parts(*best.belief, *c.belief, layout_distance(best.layout, c.layout), profile);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      std::string what = kModelMisses;
      if (k + 1 < parts.size()) {
        const ParameterError& error = profile.certainty.errors[k];  // by its largest parameter
        what = std::max_element(error.begin(), error.end(), [](const auto& a, const auto& b) {
                 return std::abs(a.second) < std::abs(b.second);
               })->first;
      }
      sums[what] += parts[k];
      all += parts[k];
    }
  }
  for (const auto& [what, sum] : sums)
    if (sum > 0) result.tied_by.emplace_back(what, sum / all);
  std::stable_sort(result.tied_by.begin(), result.tied_by.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

// Kinds of parallelism, sharding and recomputation that a layout uses: what has to be configured
// and may go wrong. Sequence parallelism comes with tensor parallelism, replicas and microbatches
// with any layout.
int kinds_of(const ModuleLayout& grid) {
  const bool kinds[] = {grid.tp > 1,
                        grid.cp > 1,
                        grid.ep > 1,
                        grid.pp > 1,
                        grid.vpp > 1,
                        grid.shard >= Shard::optimizer,
                        grid.shard >= Shard::gradients,
                        grid.shard == Shard::full,
                        grid.shard_ranks > 0,
                        grid.recompute >= Recompute::selective,
                        grid.recompute == Recompute::full,
                        !grid.recompute_blocks.empty(),
                        grid.offload_activations,
                        grid.tp_pieces > 1,
                        grid.cp_attention != ContextAttention::all_gather,
                        !grid.blocks.empty(),
                        grid.ahead > 0};
  return static_cast<int>(std::count(std::begin(kinds), std::end(kinds), true));
}
int kinds_of(const Layout& layout) {
  const bool kinds[] = {layout.placement != Placement::homogeneous,
                        layout.schedule != ScheduleKind::one_f_one_b,
                        layout.encoder_microbatches > 0,
                        layout.encoder_order != EncoderOrder::in_turn,
                        layout.bridge != Bridge::sharded,
                        layout.planner != Planning::none};
  auto sum = static_cast<int>(std::count(std::begin(kinds), std::end(kinds), true));
  if (layout.placement == Placement::homogeneous) return sum + kinds_of(layout.modules.back());
  for (const ModuleLayout& grid : layout.modules) sum += kinds_of(grid);
  return sum;
}

void find_ties(const HardwareProfile& profile, Sweep& result) {
  if (result.ranked.empty()) return;
  // The simplest is no slower than this by its point estimate.
  constexpr double kAsGood = 0.02;
  const Seconds best = result.ranked.front().figures.step;
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    Candidate& c = result.ranked[i];
    c.tied = i == 0 || (c.difference ? c.difference->tied()
                                     : c.figures.step <= best * (1 + profile.step_error));
    if (!c.tied) continue;
    ++result.tied;
    if (c.figures.step > best * (1 + kAsGood)) continue;
    const Layout& simplest = result.ranked[result.simplest].layout;
    const int kinds = kinds_of(c.layout), least = kinds_of(simplest);
    if (kinds < least || (kinds == least && simpler(c.layout, simplest))) result.simplest = i;
  }
  find_what_ties(profile, result);
}

std::vector<std::string> why_it_wins(const Sweep& result) {
  std::vector<std::string> lines;
  if (result.ranked.empty()) return lines;
  const Candidate& winner = result.ranked.front();
  std::map<Placement, bool> seen{{winner.layout.placement, true}};
  for (const Candidate& other : result.ranked) {
    if (seen[other.layout.placement]) continue;
    seen[other.layout.placement] = true;
    std::vector<std::pair<double, std::string>> parts;
    for (const traces::Part part :
         {traces::Part::forward, traces::Part::backward, traces::Part::recompute,
          traces::Part::optimizer, traces::Part::idle}) {
      const auto i = static_cast<std::size_t>(part);
      const double more = (other.parts[i] - winner.parts[i]).count();
      if (std::abs(more) > 0.001 * winner.figures.step.count())
        parts.push_back({more, std::string(traces::name(part)) + (more > 0 ? " +" : " -") +
                                   seconds_text(Seconds(std::abs(more)))});
    }
    std::sort(parts.begin(), parts.end(),
              [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
    const Seconds more = other.figures.step - winner.figures.step;
    std::string text =
        "the best " + std::string(name(other.layout.placement)) + " layout takes " +
        (more > kAsLong * winner.figures.step ? seconds_text(more) + " more than" : "as long as") +
        " the fastest layout";
    if (!parts.empty()) text += "; on the rank that idles least: ";
    for (std::size_t i = 0; i < parts.size(); ++i) text += (i ? ", " : "") + parts[i].second;
    lines.push_back(text + "   [" + other.text + "]");
  }
  return lines;
}

}  // namespace

void judge(const Scenario& scenario, const HardwareProfile& profile, Sweep& result) {
  compare_with_best(scenario, profile, result);
  compare_with_baseline(profile, result);
  find_ties(profile, result);
  result.why = why_it_wins(result);
}

}  // namespace polyphony::sim
