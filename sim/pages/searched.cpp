#include "sim/pages/searched.h"

#include "sim/sweep/leading.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

std::pair<Seconds, Seconds> ends_of(const SecondsInterval& of) { return {of.low, of.high}; }

// `ranks`: what ranks are called.
SearchedRow row_of(const Candidate& c, const Model& model, const std::string& ranks) {
  SearchedRow row;
  row.words = layout_words(model, c.layout, ranks);
  row.brief = brief(model, c.layout);
  row.placement = c.layout.placement;
  row.simulated = c.simulated;
  row.leading = true;
  row.tied = c.tied;
  row.step = c.figures.step;
  if (c.change) row.change = c.change->ratio;
  if (c.belief) row.interval = ends_of(interval(*c.belief));
  if (c.difference) row.difference = ends_of(c.difference->seconds);
  row.tokens_per_second_per_rank = c.figures.tokens_per_second_per_rank;
  row.utilization = c.figures.model_flops_utilization;
  if (c.figures.dollars_per_million_tokens > 0) row.dollars = c.figures.dollars_per_million_tokens;
  row.memory = c.figures.needed_memory();
  if (c.idle) row.seconds = breakdown_seconds(c);
  return row;
}

}  // namespace

Searched searched_of(const Sweep& sweep, const Model& model) {
  Searched answer;
  answer.profile = sweep.profile;
  answer.stack = sweep.stack;
  if (!sweep.ranked.empty() && sweep.ranked.front().figures.device_memory.value > 0)
    answer.device = sweep.ranked.front().figures.device_memory;
  const std::vector<bool> leading = leading_rows(sweep, model);
  for (std::size_t i = 0; i < sweep.ranked.size(); ++i) {
    answer.ranked.push_back(row_of(sweep.ranked[i], model, sweep.ranks));
    answer.ranked.back().leading = leading[i];
  }
  for (const BaselineResult& baseline : sweep.baselines) {
    answer.baselines.push_back(row_of(baseline.candidate, model, sweep.ranks));
    answer.baselines.back().name = baseline.name;
  }
  answer.tied = static_cast<std::int64_t>(sweep.tied);
  answer.simplest = sweep.simplest;
  answer.combinations = sweep.combinations;
  answer.legal = sweep.legal;
  answer.too_large = sweep.too_large;
  answer.screened_by_bound = sweep.pruned;
  answer.estimated = sweep.estimated;
  answer.simulated = sweep.simulated;
  for (const auto& [placement, gap] : sweep.gaps) answer.gaps[name(placement)] = gap;
  answer.notes = sweep.notes;
  answer.why = sweep.why;
  return answer;
}

SearchedVaried searched_of(const Varied& varied) {
  SearchedVaried answer{varied.variations, {}};
  for (const Asked& asked : varied.asked) {
    SearchedQuestion& question = answer.questions.emplace_back();
    question.values = asked.values;
    question.why_not = asked.why_not;
    if (!asked.answer.ranked.empty())
      question.best = row_of(asked.answer.ranked.front(), asked.model, "ranks");
    for (const Candidate& c : asked.answer.ranked)  // the first of a placement is its best
      question.steps.try_emplace(c.layout.placement, c.figures.step);
  }
  return answer;
}

}  // namespace polyphony::sim
