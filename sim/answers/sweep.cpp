#include "sim/answers/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "shared/scenario/typical_batch.h"
#include "shared/text/figure_text.h"
#include "sim/answers/step.h"
#include "sim/prediction/need.h"
#include "sim/runner/worker_pool.h"

namespace polyphony::sim {
namespace {

int complexity(const Layout& layout) {
  int cells = 0;
  for (const ModuleLayout& grid : layout.modules) cells += grid.tp * grid.pp;
  return static_cast<int>(layout.placement) * 100000 + cells;
}

void note_misfit(Sweep& result, const Candidate& candidate) {
  if (result.too_large++ == 0 ||
      candidate.bound.footprint.memory < result.smallest_misfit.bound.footprint.memory)
    result.smallest_misfit = candidate;
}

// Candidates that fit, best bound first, by placement.
std::map<Placement, std::vector<Candidate>> screen(const Scenario& scenario,
                                                   const HardwareProfile& profile,
                                                   const Batch& batch, const SweepOptions& options,
                                                   Sweep& result) {
  std::map<Placement, std::vector<Candidate>> by_placement;
  const std::vector<Layout> all = candidates(scenario, &result.rejected);
  result.listed = all.size();
  Screen screener(scenario, profile, batch);
  const Bytes capacity = scenario.cluster.device.memory;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (options.progress && i % 256 == 0)
      options.progress(static_cast<double>(i) / static_cast<double>(all.size()) * 0.2, "screening");
    if (options.runnable) {
      if (const auto no = check_runnable(scenario, all[i])) {
        ++result.not_runnable;
        result.not_runnable_example = no->reason;
        continue;
      }
    }
    Candidate candidate;
    candidate.layout = all[i];
    candidate.text = describe(scenario.model, all[i]);
    const Footprint footprint =
        screener.footprint(all[i]);  // most do not fit, and this is the cheap half
    // The screen counts this project's tensors.
    const bool ours = profile.stack.memory.keeping == Keeping::polyphony;
    if (ours && capacity.value > 0 && footprint.memory > capacity) {
      candidate.bound.footprint = footprint;
      note_misfit(result, candidate);
      continue;
    }
    candidate.bound = screener.bound(all[i]);
    by_placement[candidate.layout.placement].push_back(std::move(candidate));
  }
  for (auto& [placement, list] : by_placement)
    std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
      return a.bound.step < b.bound.step;
    });
  return by_placement;
}

// How the first candidates differ from the best, as the profile knows its errors.
void compare_with_best(const HardwareProfile& profile, std::size_t compared, Sweep& result) {
  const std::size_t count = std::min(compared, result.ranked.size());
  for (std::size_t i = 0; i < count; ++i) {
    Candidate& c = result.ranked[i];
    c.belief = make_belief(c.figures.step, c.effects, profile);
    const Candidate& best = result.ranked.front();
    if (i > 0)
      c.difference =
          compare_beliefs(*best.belief, *c.belief, layout_distance(best.layout, c.layout), profile);
  }
}

void find_ties(const HardwareProfile& profile, Sweep& result) {
  if (result.ranked.empty()) return;
  const Seconds best = result.ranked.front().figures.step;
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    Candidate& c = result.ranked[i];
    c.tied = i == 0 || (c.difference ? c.difference->tied()
                                     : c.figures.step <= best * (1 + profile.step_error));
    if (!c.tied) continue;
    ++result.tied;
    if (complexity(c.layout) < complexity(result.ranked[result.simplest].layout))
      result.simplest = i;
  }
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
    std::string text = "the best " + std::string(name(other.layout.placement)) + " layout takes " +
                       seconds_text(other.figures.step - winner.figures.step) +
                       " more than the winner";
    if (!parts.empty()) text += "; on its busiest rank: ";
    for (std::size_t i = 0; i < parts.size(); ++i) text += (i ? ", " : "") + parts[i].second;
    lines.push_back(text + "   [" + other.text + "]");
  }
  return lines;
}

// As many at a time as there is memory for; what has none alone is refused.
struct Workers {
  int count = 1;
  std::vector<std::string> why_not;  // by candidate; empty: it is examined
};
Workers workers_for(const Scenario& scenario, const std::vector<Candidate>& round,
                    const SweepOptions& options) {
  Workers workers{std::max(1, options.jobs), std::vector<std::string>(round.size())};
  if (options.memory.value <= 0) return workers;
  Bytes most{1};
  for (std::size_t i = 0; i < round.size(); ++i) {
    const NeedOptions alone{.predictor = options.predictor};
    if (const auto no = check_need(scenario, round[i].layout, alone, options.memory))
      workers.why_not[i] = no->reason;
    else
      most = std::max(most, need_of(scenario, round[i].layout, alone).bytes);
  }
  const std::int64_t fit = std::max<std::int64_t>(1, options.memory.value / most.value);
  workers.count = static_cast<int>(std::min<std::int64_t>(workers.count, fit));
  return workers;
}

}  // namespace

Sweep sweep(const Scenario& scenario, const HardwareProfile& profile, const SweepOptions& options) {
  const Model& model = scenario.model;
  if (model.modules.size() > 3 || model.modules.back().kind != ModuleKind::language)
    throw InputError(scenario.file, "/model",
                     "the search proposes layouts of at most one encoder before a language module",
                     "write a \"layout\" and compare with `polyphony simulate`");
  Sweep result;
  result.profile = profile.name;
  result.stack = profile.stack.name;
  result.stated_error = profile.step_error;
  const Batch batch = typical_batch(scenario);
  std::map<Placement, std::vector<Candidate>> waiting =
      screen(scenario, profile, batch, options, result);
  std::map<Placement, std::size_t> taken;
  std::size_t total = 0;
  for (const auto& [placement, list] : waiting)
    total += std::min(list.size(), static_cast<std::size_t>(options.at_most));
  double best = 1e300;
  std::size_t simulated = 0;
  while (true) {
    // One round: the next best bound of each placement, as long as it can still matter.
    std::vector<Candidate> round;
    for (int turn = 0; turn < std::max(1, options.jobs); ++turn) {
      for (auto& [placement, list] : waiting) {
        std::size_t& next = taken[placement];
        if (next >= list.size() || next >= static_cast<std::size_t>(options.at_most)) continue;
        const bool hopeless = list[next].bound.step.count() > best * (1 + profile.step_error);
        if (hopeless && next >= static_cast<std::size_t>(options.at_least)) continue;
        round.push_back(list[next++]);
      }
    }
    if (round.empty()) break;
    const Workers workers = workers_for(scenario, round, options);
    const std::vector<std::string> answers = run_in_workers(
        workers.count, round.size(),
        [&](std::size_t i) {
          if (!workers.why_not[i].empty()) return refused_candidate(workers.why_not[i]);
          return examine_candidate(scenario, batch, profile, options.predictor, round[i].layout);
        },
        [&](std::size_t done) {
          if (options.progress)
            options.progress(0.2 + 0.8 * static_cast<double>(simulated + done) /
                                       static_cast<double>(std::max<std::size_t>(1, total)),
                             "simulating " + std::to_string(simulated + done + 1));
        });
    for (std::size_t i = 0; i < round.size(); ++i) {
      ++simulated;
      if (const std::string why = read_examined(answers[i], round[i]); !why.empty()) {
        result.failed.push_back(round[i].text + ": " + why);
        continue;
      }
      if (!round[i].figures.fits()) {
        round[i].bound.footprint = {round[i].figures.peak_memory, round[i].figures.worst_stage};
        note_misfit(result, round[i]);
        continue;
      }
      best = std::min(best, round[i].figures.step.count());
      result.ranked.push_back(std::move(round[i]));
    }
  }
  for (const auto& [placement, list] : waiting) result.screened += list.size() - taken[placement];
  std::stable_sort(
      result.ranked.begin(), result.ranked.end(),
      [](const Candidate& a, const Candidate& b) { return a.figures.step < b.figures.step; });
  compare_with_best(profile, options.compared, result);
  find_ties(profile, result);
  result.why = why_it_wins(result);
  if (auto note = shared_cores_note(scenario, options.cores)) result.notes.push_back(*note);
  return result;
}

}  // namespace polyphony::sim
