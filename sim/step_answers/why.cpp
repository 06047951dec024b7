#include "sim/step_answers/why.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "shared/cost/layer_costs.h"
#include "shared/search/neighbours.h"
#include "shared/search/space.h"
#include "sim/runner/worker_pool.h"
#include "sim/step_answers/layout_change.h"
#include "sim/sweep/candidate.h"
#include "sim/sweep/layout_numbers.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kCompared = 16;
// Smallest relative improvement; smaller differences are rounding errors.
constexpr double kBetter = 1e-4;

// Returns the layout itself, and then the layouts one change away that are different in effect.
std::vector<Layout> layouts_near(const Scenario& scenario, const Layout& layout) {
  std::vector<Layout> found;
  std::set<std::string> seen;
  const auto add = [&](const Layout& next) {
    if (seen.insert(layout_numbers(at_rest(scenario, next)).dump()).second) found.push_back(next);
  };
  add(layout);
  for (const Layout& next : neighbours(scenario, layout)) add(next);
  return found;
}

class Trials {
 public:
  Trials(const Question& question, const WhyOptions& options, std::vector<Layout> layouts)
      : question_(question), options_(options) {
    for (Layout& layout : layouts) all_.emplace_back().layout = std::move(layout);
    work_ = all_.size() + kCompared;
  }

  void estimate(const std::vector<std::size_t>& which, bool effects) {
    const int jobs = std::max(1, options_.jobs);
    const Bytes each = options_.memory / static_cast<std::int64_t>(jobs);
    const auto answers = run_on_threads(
        jobs, which.size(),
        [&](std::size_t i) {
          return estimate_candidate(question_, all_[which[i]].layout, effects, each);
        },
        [&](std::size_t done) {
          if (options_.progress)
            options_.progress(static_cast<double>(done_ + done) / static_cast<double>(work_));
        });
    done_ += which.size();
    for (std::size_t i = 0; i < which.size(); ++i) adopt(answers[i], all_[which[i]]);
  }

  const std::vector<Candidate>& all() const { return all_; }

 private:
  const Question question_;
  const WhyOptions& options_;
  std::vector<Candidate> all_;
  std::size_t work_ = 0, done_ = 0;
};

WorthTrying judged(const Candidate& now, const Candidate& then, const Belief& belief,
                   const Question& question) {
  WorthTrying result;
  result.layout = then.layout;
  result.words = changes(question.scenario.model, now.layout, then.layout);
  result.step = then.figures.step;
  result.gain = 1 - then.figures.step / now.figures.step;
  result.certainty = compare_beliefs(belief,
                                     make_belief(then.figures.step, then.effects, question.profile,
                                                 question.scenario, then.layout),
                                     layout_distance(now.layout, then.layout), question.profile)
                         .second_wins;
  result.peak_memory = then.figures.peak_memory;
  return result;
}

void find_changes(const Question& question, const Layout& layout, const WhyOptions& options,
                  WhyAnswer& answer) {
  Trials trials(question, options, layouts_near(question.scenario, layout));
  std::vector<std::size_t> which(trials.all().size());
  for (std::size_t i = 0; i < which.size(); ++i) which[i] = i;
  trials.estimate(which, false);
  const Candidate& now = trials.all().front();
  answer.looked_at = which.size() - 1;
  if (!now.why_not.empty()) {
    answer.notes.push_back("no changes were tried: " + now.why_not);
    return;
  }
  answer.estimate = now.figures.step;
  const bool fits = now.figures.fits();
  // A change keeps the search's memory margin, unless the layout itself takes more.
  const Bytes limit =
      std::max(question.scenario.memory_limit(), fits ? now.figures.needed_memory() : Bytes{});
  std::vector<std::size_t> best;
  for (std::size_t i = 1; i < trials.all().size(); ++i) {
    const Candidate& then = trials.all()[i];
    if (!then.why_not.empty()) {
      ++answer.unanswered;
      continue;
    }
    if (limit.value > 0 && then.figures.needed_memory() > limit) continue;
    ++answer.fitting;
    if (!fits || then.figures.step < now.figures.step * (1 - kBetter)) best.push_back(i);
  }
  std::stable_sort(best.begin(), best.end(), [&](std::size_t a, std::size_t b) {
    return trials.all()[a].figures.step < trials.all()[b].figures.step;
  });
  best.resize(std::min(best.size(), kCompared));
  trials.estimate(best, true);
  Belief belief = answer.now.belief;
  belief.step = now.figures.step;
  for (const std::size_t i : best)
    if (trials.all()[i].why_not.empty())
      answer.worth_trying.push_back(judged(now, trials.all()[i], belief, question));
  if (fits)
    std::stable_sort(answer.worth_trying.begin(), answer.worth_trying.end(),
                     [](const WorthTrying& a, const WorthTrying& b) {
                       return a.gain * a.certainty > b.gain * b.certainty;
                     });
  if (answer.worth_trying.size() > options.most) answer.worth_trying.resize(options.most);
}

}  // namespace

std::variant<WhyAnswer, Infeasible> answer_why(const Scenario& scenario, const Layout& layout,
                                               const Batch& batch, const HardwareProfile& profile,
                                               const WhyOptions& options) {
  auto step = answer_step(scenario, layout, batch, profile,
                          {.predictor = options.predictor, .cores = options.cores});
  if (const auto* no = std::get_if<Infeasible>(&step)) return *no;
  WhyAnswer answer;
  answer.now = std::get<StepAnswer>(std::move(step));
  answer.notes = answer.now.notes;
  answer.idle = traces::idle_times(answer.now.prediction.program, answer.now.prediction.timeline);
  if (layout.actions.empty())
    find_changes(Question(borrow_inputs(scenario, profile)), layout, options, answer);
  else
    answer.notes.push_back("no changes were tried: the layout has a list of actions");
  return answer;
}

}  // namespace polyphony::sim
