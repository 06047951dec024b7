#include "sim/sweep/contest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "shared/lower/fold.h"
#include "shared/text/figure_text.h"
#include "sim/prediction/need.h"
#include "sim/sweep/layout_numbers.h"

namespace polyphony::sim {
namespace {

// Candidates per round of estimates, for any number of threads. Enough that starting threads takes
// little time, and few enough that results soon guide the next round.
constexpr std::size_t kRound = 24;
// The first simulation may cost this many times the budget.
constexpr std::int64_t kFirstSimulated = 4;
// Candidates simulated before the ranking is computed again.
constexpr std::size_t kSimulatedAtOnce = 2;
// Estimates that show what a kind's least ratio of estimate to bound is, and the allowance for a
// kind that its family stands for.
constexpr int kKnown = 3;
constexpr double kAllowance = 0.97;

}  // namespace

Contest::Contest(const Question& question, const Space& space, Screen& screen, KnownAnswers& known,
                 const ContestOptions& options)
    : question_(question), space_(space), screen_(screen), known_(known), options_(options) {}

std::size_t Contest::position(const Layout& given, const Bound& bound) {
  const Layout layout = at_rest(question_.scenario, given);
  const auto [known, added] =
      positions_.try_emplace(layout_numbers(layout).dump(), candidates_.size());
  if (added) {
    Candidate& candidate = candidates_.emplace_back();
    candidate.layout = layout;
    candidate.text = describe(question_.scenario.model, layout);
    candidate.bound = bound;
    standings_.push_back({kind_of(layout)});
  }
  return known->second;
}

Contest::Kind Contest::kind_of(const Layout& layout) const {
  const ModuleLayout& grid = layout.modules[space_.owners()[space_.language()].value];
  const Shape shape{
      static_cast<int>(layout.placement), grid.first_rank, grid.ranks, grid.tp, grid.cp, grid.pp};
  const Family family{shape, layout.schedule, layout.encoder_microbatches};
  return {family, grid.shard, grid.recompute};
}

void Contest::enter(const Screened& screened) {
  for (const Listed& listed : screened.kept) position(listed.layout, listed.bound);
  may_fit_if_resplit_ = screened.may_fit_if_resplit;
}

void Contest::enter(const Layout& layout) { position(layout, screen_.bound(layout)); }

std::vector<TaskResult<std::string>> Contest::ask(
    const std::string& what, const std::vector<std::size_t>& positions,
    const std::pair<std::string, std::int64_t>& saying,
    const std::function<std::string(const Layout&, Bytes)>& work) {
  std::vector<std::string> keys;
  for (const std::size_t at : positions)
    keys.push_back(what + " " + layout_numbers(candidates_[at].layout).dump());
  const auto together =
      std::min<std::size_t>(positions.size(), static_cast<std::size_t>(std::max(1, options_.jobs)));
  const Bytes each =
      options_.memory / std::max<std::int64_t>(1, static_cast<std::int64_t>(together));
  Seconds least{};
  for (const std::size_t i : fitting())
    if (least.count() == 0 || candidates_[i].figures.step < least)
      least = candidates_[i].figures.step;
  const std::string best = least.count() > 0 ? ", best " + seconds_text(least) : "";
  return known_.ask(
      options_.jobs, keys,
      [&](std::size_t i) { return work(candidates_[positions[i]].layout, each); },
      [&](std::size_t done) {
        const auto so_far = saying.second + static_cast<std::int64_t>(done);
        if (options_.progress)
          options_.progress(-1, saying.first + " " + count_text(so_far) + best);
      });
}

std::vector<std::size_t> Contest::runnable(const std::vector<std::size_t>& positions) {
  if (!options_.runnable_form) return positions;
  std::vector<std::size_t> found;
  std::set<std::size_t> taken;
  for (std::size_t at : positions) {
    if (!standings_[at].runnable && standings_[at].waiting) {
      const Layout layout = candidates_[at].layout;
      const std::optional<Layout> form = options_.runnable_form(*question_.inputs, layout);
      if (form && *form == layout) {
        standings_[at].runnable = true;
      } else {
        standings_[at].waiting = false;
        standings_[at].refused = true;
        if (form) {
          const std::size_t other = position(*form, screen_.bound(*form));
          standings_[other].runnable = true;
          if (!standings_[other].replaced) standings_[other].replaced = layout;
          standings_[at].replacement = other;
        }
      }
    }
    if (standings_[at].replacement) at = *standings_[at].replacement;
    if (standings_[at].runnable && taken.insert(at).second) found.push_back(at);
  }
  return found;
}

std::int64_t Contest::estimate_all(const std::vector<std::size_t>& positions,
                                   const std::string& what) {
  std::vector<std::size_t> open;
  for (const std::size_t at : positions)
    if (standings_[at].waiting) open.push_back(at);
  const auto answers =
      ask("estimate", open, {what, estimated_}, [&](const Layout& layout, Bytes memory) {
        return to_text(estimate_candidate(question_, layout, false, memory));
      });
  std::int64_t ops = 0;
  for (std::size_t i = 0; i < open.size(); ++i) {
    Candidate& candidate = candidates_[open[i]];
    Standing& standing = standings_[open[i]];
    read_answer(answers[i], candidate);
    standing.waiting = false;
    ++estimated_;
    ops += candidate.ops;
    if (!candidate.why_not.empty() || candidate.bound.step.count() <= 0) continue;
    const double over = candidate.estimate / candidate.bound.step;
    for (Ratio* const ratio :
         {&ratios_[standing.kind], &family_ratios_[std::get<Family>(standing.kind)]}) {
      ratio->sum += over;
      ratio->least = std::min(ratio->least, over);
      ratio->ops += candidate.ops;
      ++ratio->count;
    }
  }
  return ops;
}

// Returns how many ops an estimate of the candidate will lower: as others of its kind on average;
// without such, those of the whole Program if it cannot fold, else few: 0.
std::int64_t Contest::expected_ops(std::size_t at) const {
  const auto known = ratios_.find(standings_[at].kind);
  if (known != ratios_.end()) return known->second.ops / known->second.count;
  const Layout& layout = candidates_[at].layout;
  if (may_fold(question_.scenario.model, layout)) return 0;
  return static_cast<std::int64_t>(
      need_of(question_.scenario, layout, {.predictor = Predictor::estimate}).ops);
}

bool Contest::too_slow(const Kind& kind, Seconds bound, double limit) const {
  if (const auto of = ratios_.find(kind); of != ratios_.end() && of->second.count >= kKnown)
    return bound.count() * of->second.least > limit;
  const auto of = family_ratios_.find(std::get<Family>(kind));
  return of != family_ratios_.end() && of->second.count >= kKnown &&
         bound.count() * of->second.least * kAllowance > limit;
}

void Contest::estimate_best(Placement placement, std::int64_t ops, double within) {
  while (ops > 0 && !stopped()) {
    const double limit = best(placement).count() * (1 - within);
    const bool unlikely = within > 0;  // else all candidates are estimated
    struct Promise {
      double seconds;
      std::size_t at;
    };
    std::vector<Promise> promises;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& c = candidates_[i];
      if (c.layout.placement != placement || !standings_[i].waiting) continue;
      if (c.bound.step.count() >= limit) continue;
      const auto ratio = ratios_.find(standings_[i].kind);
      const double over = ratio == ratios_.end() ? 1 : ratio->second.sum / ratio->second.count;
      if (unlikely && too_slow(standings_[i].kind, c.bound.step, limit)) continue;
      promises.push_back({c.bound.step.count() * over, i});
    }
    if (promises.empty()) return;
    std::sort(promises.begin(), promises.end(), [&](const Promise& a, const Promise& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds
                                    : simpler(candidates_[a.at].layout, candidates_[b.at].layout);
    });
    // Of a kind without estimates, only one candidate is taken: it gives the ratio for the others.
    // A round costs no more than what is left, unless it has one candidate: Programs of layouts
    // that do not fold are a hundred times as large as others.
    std::vector<std::size_t> round;
    std::set<Kind> asked;
    std::int64_t cost = 0;
    for (const Promise& promise : promises) {
      const Kind& kind = standings_[promise.at].kind;
      if (!ratios_.contains(kind) && !asked.insert(kind).second) continue;
      cost += expected_ops(promise.at);
      if (!round.empty() && cost > ops) break;
      round.push_back(promise.at);
      if (round.size() == kRound) break;
    }
    round = runnable(round);
    ops -= std::max<std::int64_t>(1, estimate_all(round, "estimating"));
    for (const std::size_t at : round) recompute_more(at);
  }
}

void Contest::simulate_best(Placement placement, std::size_t at_least, std::int64_t ops) {
  std::size_t done = 0;
  std::set<std::size_t> failed;
  while (!stopped()) {
    std::vector<std::size_t> round;
    const std::vector<std::size_t> ranked = ranking(placement);
    std::int64_t cost = 0;
    // The best if it is not simulated yet, then the next of the first few.
    for (std::size_t i = 0; i < ranked.size() && round.size() < kSimulatedAtOnce; ++i) {
      const bool wanted = i == 0 || (done > 0 ? done + round.size() < at_least : true);
      if (!wanted) break;
      if (candidates_[ranked[i]].simulated || failed.contains(ranked[i])) continue;
      const auto need = static_cast<std::int64_t>(
          need_of(question_.scenario, candidates_[ranked[i]].layout, {}).ops);
      const bool first = done == 0 && round.empty();
      if (cost + need > (first ? kFirstSimulated * ops : ops)) break;
      cost += need;
      round.push_back(ranked[i]);
    }
    if (round.empty()) return;
    ops -= cost;
    done += simulate_all(round);
    for (const std::size_t at : round)
      if (!candidates_[at].simulated) failed.insert(at);
  }
}

std::size_t Contest::simulate_all(const std::vector<std::size_t>& positions) {
  const auto answers = ask(
      "simulate", positions, {"simulating", simulated_}, [&](const Layout& layout, Bytes memory) {
        return to_text(examine_candidate(question_, Predictor::simulate, layout, memory));
      });
  std::size_t done = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    Candidate found = candidates_[positions[i]];
    read_answer(answers[i], found);
    if (!found.why_not.empty()) continue;
    candidates_[positions[i]] = found;
    ++simulated_;
    ++done;
  }
  return done;
}

void Contest::simulate(std::size_t position, std::int64_t ops) {
  const Candidate& c = candidates_[position];
  if (c.simulated || !c.why_not.empty() || stopped()) return;
  const double need = need_of(question_.scenario, c.layout, {}).ops;
  if (need <= static_cast<double>(kFirstSimulated * ops)) simulate_all({position});
}

std::size_t Contest::estimate(const Layout& layout) {
  const std::size_t at = position(layout, screen_.bound(layout));
  runnable({at});  // so that rankings leave it out if it is not
  if (standings_[at].refused && candidates_[at].estimate == Seconds(0))
    standings_[at].waiting = true;
  estimate_all({at}, "estimating");
  return at;
}

void Contest::add_effects(const std::vector<std::size_t>& positions) {
  std::vector<std::size_t> open;
  for (const std::size_t at : positions)
    if (candidates_[at].effects.empty() && candidates_[at].why_not.empty()) open.push_back(at);
  const auto answers =
      ask("effects", open, {"comparing", 0}, [&](const Layout& layout, Bytes memory) {
        return to_text(estimate_candidate(question_, layout, true, memory));
      });
  for (std::size_t i = 0; i < open.size(); ++i) {
    Candidate found;
    read_answer(answers[i], found);
    if (!found.why_not.empty()) continue;
    candidates_[open[i]].effects = found.effects;
    candidates_[open[i]].parts = found.parts;
    candidates_[open[i]].idle = found.idle;
  }
}

void Contest::add_p95(const std::vector<std::size_t>& positions) {
  const auto answers =
      ask("p95", positions, {"streaming", 0}, [&](const Layout& layout, Bytes memory) {
        return to_text(stream_candidate(question_, layout, memory));
      });
  for (std::size_t i = 0; i < positions.size(); ++i)
    read_p95(answers[i], candidates_[positions[i]]);
}

}  // namespace polyphony::sim
