#include "sim/sweep/goal_sweep.h"

#include <algorithm>
#include <cmath>

#include "shared/chunk/parameters.h"

namespace polyphony::sim {
namespace {

// Factor by which the allowed memory decreases each time a variant is repeated, and the most
// repeats.
constexpr double kLessMemory = 0.75;
constexpr int kMostLimits = 12;
// Smallest relative improvement of the second objective between points of a Pareto front that
// belong to the same variant.
constexpr double kWorthARow = 0.02;

Bytes state_of(const Model& model) {
  constexpr std::int64_t kBytesOfState = 12;
  std::int64_t trained = 0;
  for (const Module& module : model.modules)
    if (module.trainable != Trainable::frozen)
      for (const Parameter& parameter : parameters(module))
        if (parameter.trained && !parameter.copy) trained += parameter.count();
  return Bytes(trained * kBytesOfState);
}

std::optional<Campaign> campaign_of(const VariantSweep& of, const Candidate& c, Bytes state) {
  const Scenario& scenario = of.scenario;
  if (!(scenario.goal.tokens > 0) || c.figures.tokens == 0) return {};
  return campaign(scenario.goal,
                  {c.figures.step, static_cast<double>(c.figures.tokens), scenario.cluster.nodes,
                   scenario.cluster.ranks_per_node, state, scenario.cluster.dollars_per_rank_hour});
}

// Returns the value of an objective in its unit; NaN if it is unknown.
double value_of(Objective objective, const Candidate& c, const std::optional<Campaign>& campaign,
                double of_written_batch) {
  switch (objective) {
    case Objective::step:
      return c.figures.step.count() * of_written_batch;
    case Objective::tokens_per_gpu:
      return c.figures.tokens_per_second_per_rank;
    case Objective::days:
      return campaign ? campaign->days() : std::nan("");
    case Objective::dollars:
      return campaign ? campaign->dollars : std::nan("");
    case Objective::p95:
      return c.p95 ? c.p95->count() * of_written_batch : std::nan("");
    case Objective::memory:
      return static_cast<double>(c.figures.peak_memory.value);
  }
  return std::nan("");
}

class Asking {
 public:
  Asking(const Scenario& scenario, const HardwareProfile& profile, const SweepOptions& options)
      : scenario_(scenario), profile_(profile), options_(options) {
    if (options_.known == nullptr) options_.known = &own_;
    result_.goal = scenario.goal;
  }

  GoalSweep answer() {
    const std::vector<Variant> all = variants(scenario_);
    const bool less_memory = wants(scenario_.goal, Objective::memory);
    for (std::size_t i = 0; i < all.size() && !result_.stopped; ++i) {
      share_ = {static_cast<double>(i) / static_cast<double>(all.size()),
                1 / static_cast<double>(all.size())};
      const Scenario variant = of_variant(scenario_, all[i]);
      Bytes limit = variant.cluster.device.memory;
      for (int asked = 0; asked < (less_memory ? kMostLimits : 1) && !result_.stopped; ++asked) {
        const Sweep& found = ask(all[i], variant, limit);
        if (found.ranked.empty() || found.none_runs) break;
        limit = Bytes(static_cast<std::int64_t>(
            kLessMemory * static_cast<double>(found.ranked.front().figures.peak_memory.value)));
      }
    }
    gather();
    return std::move(result_);
  }

 private:
  const Sweep& ask(const Variant& variant, const Scenario& scenario, Bytes limit) {
    Scenario limited = scenario;
    if (limit < scenario.cluster.device.memory) {  // a limit of its own, without the margin
      limited.cluster.device.memory = limit;
      if (!limited.search) limited.search.emplace();
      limited.search->memory_margin = 0;
    }
    SweepOptions options = options_;
    const std::string which = std::to_string(variant.nodes) + " nodes, batch " +
                              std::to_string(variant.global_batch) + ": ";
    options.progress = [&](double share, const std::string& what) {
      if (options_.progress)
        options_.progress(share_.first + share_.second * share,
                          (result_.plain() ? "" : which) + what);
    };
    options.known->of = result_.plain() ? "" : which + std::to_string(limit.value) + " ";
    result_.sweeps.push_back({variant, scenario, limit, sweep(limited, profile_, options)});
    result_.stopped = result_.sweeps.back().sweep.stopped;
    return result_.sweeps.back().sweep;
  }

  void gather() {
    const bool two = scenario_.goal.objectives.size() == 2;
    // Layouts that the target cannot run count only if it can run none at all.
    const bool some_run = std::any_of(
        result_.sweeps.begin(), result_.sweeps.end(),
        [](const VariantSweep& of) { return !of.sweep.ranked.empty() && !of.sweep.none_runs; });
    for (std::size_t s = 0; s < result_.sweeps.size(); ++s) {
      const VariantSweep& of = result_.sweeps[s];
      if (some_run && of.sweep.none_runs) continue;
      const std::vector<Candidate>& ranked = of.sweep.ranked;
      for (std::size_t place = 0; place < ranked.size(); ++place) {
        // Estimates are too low if links are shared, so they are not compared with simulations.
        if (place > 0 && (!two || (ranked.front().simulated && !ranked[place].simulated))) continue;
        add(s, place);
      }
    }
    const auto before = [&](const Reached& a, const Reached& b) {
      for (std::size_t i = 0; i < a.values.size(); ++i)
        if (a.values[i] != b.values[i])
          return better(scenario_.goal.objectives[i], a.values[i], b.values[i]);
      return false;
    };
    std::stable_sort(result_.reached.begin(), result_.reached.end(), before);
    if (two) keep_front();
  }

  void add(std::size_t s, std::size_t place) {
    const VariantSweep& of = result_.sweeps[s];
    const Candidate& c = of.sweep.ranked[place];
    Reached point{s, place, {}, campaign_of(of, c, state_)};
    for (const Objective objective : scenario_.goal.objectives)
      point.values.push_back(
          value_of(objective, c, point.campaign,
                   static_cast<double>(scenario_.data.global_batch) / of.variant.global_batch));
    const bool known = std::none_of(point.values.begin(), point.values.end(),
                                    [](double value) { return std::isnan(value); });
    if (known) result_.reached.push_back(std::move(point));
  }

  // Keeps the Pareto front of points sorted by the first objective: those that are better in the
  // second objective than all before, within a variant by at least kWorthARow.
  void keep_front() {
    const Objective second = scenario_.goal.objectives[1];
    std::vector<Reached> front;
    const auto of = [&](const Reached& point) { return result_.sweeps[point.sweep].variant; };
    for (Reached& point : result_.reached) {
      const auto gains = [&](const Reached& last) {
        const double row = of(last) == of(point) ? kWorthARow : 0;
        return better(second, point.values[1],
                      last.values[1] * (better(second, 0, 1) ? 1 - row : 1 + row));
      };
      if (front.empty() || gains(front.back())) front.push_back(std::move(point));
    }
    result_.reached = std::move(front);
  }

  const Scenario& scenario_;
  const HardwareProfile& profile_;
  SweepOptions options_;
  KnownAnswers own_;
  const Bytes state_ = state_of(scenario_.model);
  GoalSweep result_;
  std::pair<double, double> share_{0, 1};  // progress at the start of this variant, and its part
};

}  // namespace

bool better(Objective objective, double one, double other) {
  return objective == Objective::tokens_per_gpu ? one > other : one < other;
}

GoalSweep sweep_for_goal(const Scenario& scenario, const HardwareProfile& profile,
                         const SweepOptions& options) {
  return Asking(scenario, profile, options).answer();
}

}  // namespace polyphony::sim
