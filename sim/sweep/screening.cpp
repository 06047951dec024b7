#include "sim/sweep/screening.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "shared/fnv.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/text/figure_text.h"
#include "sim/sweep/layout_numbers.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json to_json(const Listed& listed) {
  return {layout_numbers(listed.layout), listed.bound.step.count(), listed.bound.busiest.count(),
          listed.bound.footprint.memory.value, listed.bound.footprint.worst};
}
Listed listed_of(const json& value) {
  Listed listed{layout_of(value[0]), {}};
  listed.bound.step = Seconds(value[1].get<double>());
  listed.bound.busiest = Seconds(value[2].get<double>());
  listed.bound.footprint = {Bytes(value[3].get<std::int64_t>()), value[4].get<std::string>()};
  return listed;
}

std::string answer_of(const Shortlist& list) {
  json answer = {{"considered", list.considered}, {"legal", list.legal},
                 {"large", list.too_large},       {"beaten", list.pruned},
                 {"best", json::array()},         {"rejections", json::array()}};
  if (std::isfinite(list.rest.count())) answer["rest"] = list.rest.count();
  for (const Listed& listed : list.best) answer["best"].push_back(to_json(listed));
  for (const Listed& listed : list.may_fit_if_resplit) answer["tight"].push_back(to_json(listed));
  if (list.smallest_too_large) answer["misfit"] = to_json(*list.smallest_too_large);
  for (const Rejection& r : list.rejections)
    answer["rejections"].push_back({static_cast<int>(r.placement), r.example, r.count});
  return answer.dump();
}

// Returns the cache key of a unit. `of`: digest of the scenario with its search, because units of
// the reduced space have the same numbers but different contents.
std::string key_of(const Division& division, const Unit& unit, const ListerOptions& options,
                   const std::string& of) {
  json key = {
      "unit",           static_cast<int>(division.placement), unit.begin,   unit.end, options.keep,
      options.encoders, options.may_fit_if_resplit,           json::array()};
  for (const RankRange& ranks : division.ranks) key.back().push_back({ranks.first, ranks.count});
  const auto limit = options.limits.find(division.placement);
  if (limit != options.limits.end()) key.push_back(limit->second.count());
  key.push_back(of);
  return key.dump();
}

// A lister for each thread that asks for one at the same time.
class Listers {
 public:
  explicit Listers(Lister& first) : first_(first) { free_.push_back(&first); }

  Shortlist list(const Unit& unit, const ListerOptions& options) {
    Lister* const lister = take();
    Shortlist list = lister->list(unit, options);
    const std::lock_guard lock(mutex_);
    free_.push_back(lister);
    return list;
  }

 private:
  Lister* take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        Lister* const lister = free_.back();
        free_.pop_back();
        return lister;
      }
    }
    std::unique_ptr<Lister> made = first_.another();
    const std::lock_guard lock(mutex_);
    return more_.emplace_back(std::move(made)).get();
  }

  const Lister& first_;
  std::mutex mutex_;
  std::vector<Lister*> free_;
  std::vector<std::unique_ptr<Lister>> more_;
};

void add(const json& answer, Placement placement, Screened& all) {
  all.considered += answer["considered"].get<std::int64_t>();
  all.legal += answer["legal"].get<std::int64_t>();
  all.too_large += answer["large"].get<std::int64_t>();
  all.pruned += answer["beaten"].get<std::int64_t>();
  for (const json& listed : answer["best"]) all.kept.push_back(listed_of(listed));
  if (answer.contains("tight"))
    for (const json& listed : answer["tight"]) all.may_fit_if_resplit.push_back(listed_of(listed));
  if (answer.contains("rest")) {
    const Seconds rest(answer["rest"].get<double>());
    const auto [known, added] = all.rest.try_emplace(placement, rest);
    if (!added) known->second = std::min(known->second, rest);
  }
  if (answer.contains("misfit")) {
    Listed misfit = listed_of(answer["misfit"]);
    const auto needs = [](const Listed& listed) { return listed.bound.footprint.memory; };
    if (!all.smallest_too_large || needs(misfit) < needs(*all.smallest_too_large))
      all.smallest_too_large = std::move(misfit);
  }
  for (const json& r : answer["rejections"])
    all.rejections.add(static_cast<Placement>(r[0].get<int>()), r[1].get<std::string>(),
                       r[2].get<std::int64_t>());
}

}  // namespace

Screened screen_space(const Scenario& scenario, Lister& lister, const ListerOptions& options,
                      KnownAnswers& known, const SpacePart& part, int jobs,
                      const ShowProgress& progress) {
  std::vector<Unit> units;
  for (std::size_t i = 0; i < lister.units().size(); ++i)
    if (i % static_cast<std::size_t>(part.count) == static_cast<std::size_t>(part.index))
      units.push_back(lister.units()[i]);
  Fnv of;
  of.add(resolved_text(scenario));
  std::vector<std::string> keys;
  for (const Unit& unit : units)
    keys.push_back(key_of(lister.divisions()[unit.division], unit, options, of.digits()));
  Listers listers(lister);
  const auto answers = known.ask(
      jobs, keys, [&](std::size_t i) { return answer_of(listers.list(units[i], options)); },
      [&](std::size_t done) {
        if (progress)
          progress(static_cast<double>(done) / static_cast<double>(units.size()),
                   "screening " + count_text(static_cast<std::int64_t>(lister.combinations())) +
                       " combinations");
      });
  Screened all;
  all.combinations = lister.combinations();
  for (const Rejection& rejection : lister.rejections()) all.rejections.add(rejection);
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (const auto* failed = std::get_if<TaskFailed>(&answers[i])) {
      all.failed.push_back(failed->what);
      continue;
    }
    const auto& text = std::get<std::string>(answers[i]);
    const json answer = json::parse(text, nullptr, false);
    if (!answer.is_object()) {
      all.failed.push_back(text);
      continue;
    }
    add(answer, lister.divisions()[units[i].division].placement, all);
  }
  for (std::vector<Listed>* const list : {&all.kept, &all.may_fit_if_resplit})
    std::sort(list->begin(), list->end(), listed_before);
  return all;
}

}  // namespace polyphony::sim
