#include "sim/sweep/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "shared/check/check.h"
#include "shared/cost/layer_costs.h"
#include "shared/fnv.h"
#include "shared/hardware/hardware_json.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/text/figure_text.h"
#include "sim/prediction/shared_cores_note.h"
#include "sim/sweep/baselines.h"
#include "sim/sweep/verdict.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

// Spaces of up to this many combinations are evaluated completely, which proves the best.
constexpr double kSmallSpace = 30000;
// Budgets in lowered ops per placement at effort 1. A million ops take one to two seconds of a
// core.
constexpr double kThinOps = 1e6, kSpaceOps = 6e6, kClimbOps = 6e6, kSimulatedOps = 3e6;
// In a large space, estimates end when the best is known to within kWithin, and climbs start from
// candidates within kNear of it.
constexpr double kWithin = 0.005, kNear = 0.05;
constexpr std::size_t kStarts = 4;
// A placement gets its whole budget up to kClose behind the best one, and the part kLeast of it
// from kFar on.
constexpr double kClose = 0.03, kFar = 0.13, kLeast = 0.1;
// Candidates per placement that are tried with another split of stages, to make them fit. Each
// takes about 0.1 s.
constexpr std::size_t kSplitsTried = 8;

constexpr Placement kPlacements[] = {Placement::homogeneous, Placement::colocated,
                                     Placement::non_colocated, Placement::mixed};

// Restricts search dimensions that the scenario does not specify to their usual best values.
Scenario thinned(Scenario scenario) {
  if (!scenario.search) scenario.search.emplace();
  Search& search = *scenario.search;
  search.modules.resize(scenario.model.modules.size());
  const auto narrow = [](auto& list, auto values) {
    if (list.empty()) list = values;
  };
  for (ModuleSearch& module : search.modules) {
    narrow(module.cp, std::vector<int>{1});
    narrow(module.vpp, std::vector<int>{1});
    narrow(module.sp, std::vector<bool>{true});
    narrow(module.shard, std::vector<Shard>{Shard::optimizer, Shard::full});
  }
  narrow(search.schedule, std::vector<ScheduleKind>{default_schedule(1)});
  narrow(search.microbatch, std::vector<int>{1, 2});
  return scenario;
}

// Returns whether the search leaves open the kind of context-parallel attention of the language
// module.
bool leaves_ways(const Scenario& scenario) {
  const std::size_t language = language_module(scenario.model).value;
  return !scenario.search || scenario.search->modules.size() <= language ||
         scenario.search->modules[language].cp_attention.empty();
}
// Restricts that to one kind. A Lister with choose_attention replaces it by the best kind for each
// grid.
Scenario one_way(Scenario scenario) {
  if (!scenario.search) scenario.search.emplace();
  scenario.search->modules.resize(scenario.model.modules.size());
  scenario.search->modules[language_module(scenario.model).value].cp_attention = {
      ContextAttention::all_gather};
  return scenario;
}

void add_counts(const Screened& screened, const Model& model, Sweep& result) {
  result.combinations = screened.combinations;
  result.legal = screened.legal;
  result.too_large = screened.too_large;
  result.pruned = screened.pruned;
  result.rejected = screened.rejections.all();
  result.failed = screened.failed;
  if (!screened.smallest_too_large) return;
  result.smallest_too_large.layout = screened.smallest_too_large->layout;
  result.smallest_too_large.bound = screened.smallest_too_large->bound;
  result.smallest_too_large.text = describe(model, screened.smallest_too_large->layout);
}

// Returns how many candidates are compared with the best: the first few, and all that may be tied.
std::size_t compared_of(const Contest& contest, const std::vector<std::size_t>& order, double error,
                        const SweepOptions& options) {
  std::size_t count = std::min(order.size(), options.compared);
  while (count < std::min(order.size(), options.ranked) &&
         contest.all()[order[count]].figures.step <=
             contest.all()[order.front()].figures.step * (1 + error))
    ++count;
  return count;
}

// Returns the part of the budget that a placement gets, by how far its best layout is behind the
// best of all.
double worth(const Contest& contest, Placement placement) {
  const double own = contest.best(placement).count();
  double best = own;
  for (const Placement other : kPlacements) best = std::min(best, contest.best(other).count());
  if (!std::isfinite(own)) return 1;  // none is known yet, or none of any placement
  return std::clamp((kFar - (own / best - 1)) / (kFar - kClose), kLeast, 1.0);
}

// Reorders the first few candidates by the 95th percentile of their steps over varying batches.
void rank_by_p95(Contest& contest, std::vector<std::size_t>& order) {
  constexpr std::size_t kStreamed = 12;
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), kStreamed));
  contest.add_p95({order.begin(), end});
  constexpr Seconds kUnknown(std::numeric_limits<double>::infinity());
  std::stable_sort(order.begin(), end, [&](std::size_t a, std::size_t b) {
    return contest.all()[a].p95.value_or(kUnknown) < contest.all()[b].p95.value_or(kUnknown);
  });
}

}  // namespace

std::string question_digest(const Scenario& scenario, const HardwareProfile& profile) {
  // Version of the predictions; must be increased when answers to the same question change.
  constexpr int kAnswersVersion = 5;
  Fnv digest;
  digest.add(resolved_text(scenario) + to_json(profile) + std::to_string(kAnswersVersion));
  return digest.digits();
}

namespace {

// Removes choices that only the simulator has (check_runnable()): FP8 GEMMs in chunks.
Scenario with_runnable_choices(Scenario scenario) {
  if (scenario.training.fp8 == Fp8Scaling::off || !scenario.search) return scenario;
  for (ModuleSearch& module : scenario.search->modules) module.tp_pieces = {};
  return scenario;
}

// `starts`: layouts that are tried as well, if the space allows them.
Sweep sweep_within_limit(const Scenario& scenario, const HardwareProfile& profile,
                         const SweepOptions& options, const std::vector<Layout>& starts) {
  const Model& model = scenario.model;
  Sweep result;
  result.profile = profile.name;
  result.stack = profile.stack.name;
  result.ranks = ranks_word(scenario.cluster);
  result.stated_error = profile.step_error;
  result.footing = profile.certainty.footing;
  if (options.runnable)
    if (const auto no = check_runnable(scenario, {})) {
      result.not_runnable = no->reason;
      return result;
    }
  const Question question(borrow_inputs(scenario, profile));
  const Batch& batch = question.batch;
  const Space space(scenario);
  Screen screen(scenario, profile, batch);
  KnownAnswers own;
  KnownAnswers& known = options.known ? *options.known : own;
  known.stopped = options.stopped;
  double share = 0;  // estimated share of the work done
  const auto show = [&](double from, double to) {
    return [&, from, to](double part, const std::string& what) {
      if (part >= 0) share = from + (to - from) * part;
      if (options.progress) options.progress(share, what);
    };
  };
  ListerOptions listing;
  const auto ops = [&](double count) { return static_cast<std::int64_t>(count * options.effort); };

  Contest contest(question, space, screen, known,
                  {options.jobs, options.memory, show(0, 1), options.stopped, options.target.form});
  std::optional<Lister> lister(std::in_place, scenario, space, profile, batch);
  const bool small = lister->combinations() <= kSmallSpace,
             choose = !small && leaves_ways(scenario);
  const Scenario narrow = choose ? one_way(scenario) : scenario;
  const Space narrow_space(narrow);
  if (choose) lister.emplace(narrow, narrow_space, profile, batch, true);
  if (small) {
    listing.keep = listing.may_fit_if_resplit = static_cast<std::size_t>(kSmallSpace);
    listing.encoders = 0;
  } else {
    const Scenario thin = thinned(narrow);
    const Space thin_space(thin);
    Lister thin_lister(thin, thin_space, profile, batch, choose);
    const Screened first =
        screen_space(thin, thin_lister, listing, known, {}, options.jobs, show(0, 0.1));
    contest.enter(first);
    for (const Placement placement : kPlacements)
      contest.estimate_best(placement, ops(kThinOps), kWithin);
  }
  for (const Placement placement : kPlacements)
    if (const Seconds best = contest.best(placement); std::isfinite(best.count()))
      listing.limits[placement] = best;
  std::optional<Seconds> least;
  for (const auto& [placement, best] : listing.limits) least = std::min(least.value_or(best), best);
  const std::string so_far = least ? ", best " + seconds_text(*least) : "";
  const auto screening = show(0.1, 0.4);
  const Screened screened =
      screen_space(scenario, *lister, listing, known, options.part, options.jobs,
                   [&](double part, const std::string& what) { screening(part, what + so_far); });
  add_counts(screened, model, result);
  contest.enter(screened);
  for (const Layout& layout : starts)
    if (space.allows(layout)) contest.enter(layout);

  // A part answers its share of the estimates that the search with all parts asks for. That search
  // splits misfits, climbs, simulates and compares, with the bests of all parts.
  const bool whole = options.part.count == 1;
  for (const Placement placement : kPlacements) {
    share = 0.4 + 0.15 * static_cast<double>(placement);
    const auto some = [&](double count) {
      return ops(small ? count : count * worth(contest, placement)) / options.part.count;
    };
    contest.estimate_best(placement, some(small ? 5 * kSpaceOps : kSpaceOps), small ? 0 : kWithin);
    if (!whole) continue;
    contest.split_misfits(placement, small ? listing.may_fit_if_resplit : kSplitsTried,
                          some(kSpaceOps), small ? 0 : kWithin);
    contest.climb(placement, kStarts, kNear, some(kClimbOps));
    result.gaps[placement] = contest.gap(placement, screened.rest);
    // The best of a placement that is far behind stays an estimate.
    if (options.predictor == Predictor::simulate && (small || worth(contest, placement) > kLeast))
      contest.simulate_best(placement, options.at_least, ops(kSimulatedOps));
    if (!std::isfinite(contest.best(placement).count())) result.gaps.erase(placement);
  }
  std::vector<std::size_t> set_beside;
  const std::size_t searched = contest.all().size();
  std::optional<std::size_t> written;  // the scenario's layout
  for (const Baseline& baseline : whole ? baselines(scenario, screen) : std::vector<Baseline>{}) {
    set_beside.push_back(contest.estimate(baseline.layout));
    result.baselines.push_back({baseline.name, {}});
    if (baseline.name != kOwnLayout) continue;
    written = set_beside.back();
    if (options.predictor == Predictor::simulate) contest.simulate(*written, ops(kSimulatedOps));
  }
  std::vector<std::size_t> order = contest.ranking();
  std::erase_if(order, [&](std::size_t at) {  // baselines may be outside the search space
    return !space.allows(contest.all()[at].layout) || (at == written && at >= searched);
  });
  if (wants(scenario.goal, Objective::p95)) rank_by_p95(contest, order);
  std::vector<std::size_t> compared = set_beside, ranked;
  std::set<Placement> placements;
  const std::size_t near = compared_of(contest, order, profile.step_error, options);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool best = placements.insert(contest.all()[order[i]].layout.placement).second;
    if (best || i < near) compared.push_back(order[i]);
    if (best || i < options.ranked) ranked.push_back(order[i]);
  }
  if (whole) contest.add_effects(compared);
  for (const std::size_t at : ranked) result.ranked.push_back(contest.all()[at]);
  for (std::size_t i = 0; i < set_beside.size(); ++i)
    result.baselines[i].candidate = contest.all()[set_beside[i]];
  std::erase_if(result.baselines,
                [](const BaselineResult& b) { return !b.candidate.why_not.empty(); });
  result.estimated = contest.estimated();
  result.simulated = contest.simulated();
  judge(scenario, profile, result);
  result.stopped = options.stopped && options.stopped();
  if (result.stopped) {
    result.failed.clear();  // these are tasks that were stopped
    result.gaps.clear();    // unknown
    result.notes.push_back("stopped early: these are the results so far");
  }
  if (!whole)
    result.notes.push_back("the best estimates of one part of " +
                           std::to_string(options.part.count) +
                           ": the search with the journals of all parts simulates and compares");
  if (auto note = shared_cores_note(scenario, options.cores)) result.notes.push_back(*note);
  return result;
}

Scenario without_margin(Scenario scenario) {
  if (!scenario.search) scenario.search.emplace();
  scenario.search->memory_margin = 0;
  return scenario;
}

void note_over_margin(const Scenario& scenario, Sweep& found) {
  found.over_margin = true;
  found.notes.push_back("no layout leaves " + percent_text(scenario.memory_margin(), 0) +
                        " of the device's memory free: these take more (search.memory_margin)");
}

Sweep sweep_with_margin(const Scenario& scenario, const HardwareProfile& profile,
                        const SweepOptions& options) {
  Sweep found = sweep_within_limit(scenario, profile, options, {});
  const bool misfits = found.ranked.empty() && found.too_large > 0 && !found.stopped;
  if (!misfits || scenario.memory_margin() <= 0) return found;
  Sweep whole_device = sweep_within_limit(without_margin(scenario), profile, options, {});
  if (whole_device.ranked.empty()) return found;
  note_over_margin(scenario, whole_device);
  return whole_device;
}

// Searches twice, with the same known answers: for any trainer, and for the target. What the target
// runs of the first answer is a start of the second search.
Sweep sweep_for_target(const Scenario& scenario, const HardwareProfile& profile,
                       const SweepOptions& options) {
  constexpr double kShareOfFirst = 0.6;  // of the progress
  constexpr std::size_t kMostStarts = 64;
  const SweepTarget& target = options.target;
  KnownAnswers own;
  SweepOptions any = options, bound = options;
  any.target = {};
  any.known = bound.known = options.known ? options.known : &own;
  if (options.progress) {
    any.progress = [&](double share, const std::string& what) {
      options.progress(share * kShareOfFirst, what);
    };
    bound.progress = [&](double share, const std::string& what) {
      options.progress(kShareOfFirst + share * (1 - kShareOfFirst), what);
    };
  }
  const auto not_restricted = [&](Sweep& found) {
    found.notes.push_back("these rows are not restricted to what " + target.name + " can run");
  };
  Sweep all = sweep_with_margin(scenario, profile, any);
  if (all.stopped) not_restricted(all);
  if (all.ranked.empty() || all.stopped) return all;
  const auto inputs = borrow_inputs(scenario, profile);
  std::vector<Layout> starts;
  std::size_t run = 0;  // of the rows, from the first on
  for (std::size_t i = 0; i < all.ranked.size(); ++i) {
    if (run < i && starts.size() == kMostStarts) break;
    const std::optional<Layout> form = target.form(*inputs, all.ranked[i].layout);
    if (run == i && form == all.ranked[i].layout) ++run;
    if (form && starts.size() < kMostStarts) starts.push_back(*form);
  }
  if (run == all.ranked.size()) return all;
  const Scenario within = all.over_margin ? without_margin(scenario) : scenario;
  Sweep found = sweep_within_limit(target.restricted ? target.restricted(within) : within, profile,
                                   bound, starts);
  if (found.ranked.empty()) {
    all.none_runs = !found.stopped;
    all.stopped = found.stopped;
    if (all.none_runs)
      all.notes.push_back(target.name + " can run none of the layouts that were searched");
    else
      not_restricted(all);
    return all;
  }
  if (all.over_margin) note_over_margin(scenario, found);
  const Candidate& best = all.ranked.front();
  const bool by_p95 = wants(scenario.goal, Objective::p95);
  if (run == 0 && measure_of(best, by_p95) < measure_of(found.ranked.front(), by_p95))
    found.beyond = best;
  return found;
}

}  // namespace

Seconds measure_of(const Candidate& candidate, bool by_p95) {
  return by_p95 && candidate.p95 ? *candidate.p95 : candidate.figures.step;
}

Sweep sweep(const Scenario& scenario, const HardwareProfile& profile, const SweepOptions& options) {
  if (options.runnable && with_runnable_choices(scenario).search != scenario.search)
    return sweep(with_runnable_choices(scenario), profile, options);
  return options.target.form ? sweep_for_target(scenario, profile, options)
                             : sweep_with_margin(scenario, profile, options);
}

}  // namespace polyphony::sim
