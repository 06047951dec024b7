#include "sim/sweep/baselines.h"

#include <algorithm>
#include <utility>

#include "shared/check/check.h"
#include "shared/split/encoder_stage.h"

namespace polyphony::sim {
namespace {

constexpr int kWidestTensor = 8;

class Rules {
 public:
  Rules(const Scenario& scenario, Screen& screen)
      : scenario_(scenario), screen_(screen), language_(language_module(scenario.model)) {}

  std::optional<Layout> find(bool encoders_first) {
    for (const std::vector<Recompute>& tried :
         {std::vector<Recompute>{Recompute::none, Recompute::selective},
          std::vector<Recompute>{Recompute::full}})
      for (const auto& [tp, pp] : shapes())
        for (const Recompute recompute : tried) {
          if (encoders_first && pp == 1) continue;
          Layout layout = made(tp, pp, recompute);
          if (encoders_first) put_encoders_first(layout);
          if (!check_layout(scenario_, layout) && fits(layout)) return layout;
        }
    return {};
  }

 private:
  // Returns (tp, pp) in the order in which they are tried: tensor parallelism up to an NVLink
  // domain, then pipeline stages; with less tensor parallelism only for models that it does not
  // divide.
  std::vector<std::pair<int, int>> shapes() const {
    const int ranks = scenario_.cluster.ranks(), domain = scenario_.cluster.domain_size();
    std::vector<std::pair<int, int>> found;
    int widest = 1;
    for (int tp = 1; tp <= std::min(kWidestTensor, domain); tp *= 2)
      if (domain % tp == 0) found.push_back({widest = tp, 1});
    for (int tp = widest; tp >= 1; tp /= 2)
      for (int pp = 2; pp * tp <= ranks; ++pp)
        if (ranks % (tp * pp) == 0) found.push_back({tp, pp});
    return found;
  }

  Layout made(int tp, int pp, Recompute recompute) const {
    ModuleLayout grid;
    grid.tp = tp;
    grid.pp = pp;
    grid.sp = tp > 1;
    grid.ranks = scenario_.cluster.ranks();
    grid.recompute = recompute;
    if (grid.dp() > 1) grid.shard = Shard::optimizer;
    Layout layout;
    layout.modules.assign(scenario_.model.modules.size(), grid);
    layout.microbatches = std::max(1, scenario_.data.global_batch / grid.dp());
    return layout;
  }

  void put_encoders_first(Layout& layout) const {
    const Model& model = scenario_.model;
    const int pp = layout.modules.back().pp, blocks = model.modules[language_.value].layers;
    std::vector<int> each;
    for (int stage = 0; stage < pp; ++stage)
      each.push_back(blocks * (stage + 1) / pp - blocks * stage / pp);
    each.front() += blocks_of_encoders(model);
    for (std::size_t m = language_.value + 1; m < model.modules.size(); ++m)
      each.back() += model.modules[m].layers;
    layout.modules.back().blocks = each;
  }

  bool fits(const Layout& layout) {
    const Bytes capacity = screen_.room(layout);
    return capacity.value == 0 || screen_.footprint(layout).memory <= capacity;
  }

  const Scenario& scenario_;
  Screen& screen_;
  const ModuleId language_;
};

}  // namespace

std::vector<Baseline> baselines(const Scenario& scenario, Screen& screen) {
  Rules rules(scenario, screen);
  std::vector<Baseline> found;
  if (scenario.layout && scenario.layout->actions.empty() &&
      !check_layout(scenario, *scenario.layout))
    found.push_back({kOwnLayout, *scenario.layout});
  if (const auto layout = rules.find(false)) found.push_back({"rule of thumb", *layout});
  if (blocks_of_encoders(scenario.model) > 0)
    if (const auto layout = rules.find(true)) found.push_back({"encoder in stage 0", *layout});
  return found;
}

}  // namespace polyphony::sim
