#include "shared/split/joint_split.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "shared/check/check.h"
#include "shared/cost/layer_costs.h"
#include "shared/plan/stages.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/split/balanced_plan.h"

namespace polyphony {
namespace {

// For one module: the splits of its pipeline into 1, 2, … stages.
struct Pipelines {
  ModuleId module;
  std::vector<std::vector<int>> blocks;
  std::vector<double> chosen_by,
      costs;  // of the most expensive stage: by the requested balance, by all costs
};

double bottleneck_cost(const Chain& chain, const std::vector<int>& blocks,
                       const std::vector<int>& ranks) {
  const std::vector<double> costs = rank_costs(chain, ranks, blocks);
  return *std::max_element(costs.begin(), costs.end());
}

Pipelines pipelines_of(const Scenario& scenario, const Layout& layout, const Splitting& by,
                       ModuleId id, int most, Balance balance) {
  Pipelines made{id, {}, {}, {}};
  Layout aware = layout, chosen = layout;
  aware.balance = Balance::aware;
  chosen.balance = balance;
  ModuleLayout grid = layout.modules[id.value];
  const int stage_ranks = grid.ranks;
  std::vector<int> ranks;
  for (int stages = 1; stages <= most; ++stages) {
    ranks.push_back(stages - 1);
    grid.pp = stages;
    grid.ranks = stages * stage_ranks;
    const Chain chain = chain_of(scenario.model, chosen, by, {id}, grid, ranks);
    if (stages > static_cast<int>(chain.costs.size())) break;
    made.blocks.push_back(partition_chain(chain, stages));
    made.chosen_by.push_back(bottleneck_cost(chain, made.blocks.back(), ranks));
    made.costs.push_back(bottleneck_cost(chain_of(scenario.model, aware, by, {id}, grid, ranks),
                                         made.blocks.back(), ranks));
  }
  return made;
}

// Returns the number of stages of each module, at least `fewest` and `stages` in total, so that the
// most expensive stage costs the least. Among equally good distributions, the one that gives the
// first modules the fewest. Empty if the modules cannot take so many.
std::vector<int> distribute(const std::vector<Pipelines>& modules, const std::vector<int>& fewest,
                            int stages) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto places = static_cast<std::size_t>(stages) + 1;
  // By module and stages left for it and those after it.
  std::vector<std::vector<double>> least(modules.size() + 1, std::vector<double>(places, kNone));
  std::vector<std::vector<int>> taken(modules.size(), std::vector<int>(places, 0));
  least.back()[0] = 0;
  for (std::size_t m = modules.size(); m-- > 0;)
    for (std::size_t left = 0; left < places; ++left)
      for (auto own = static_cast<std::size_t>(fewest[m]);
           own <= std::min(left, modules[m].costs.size()); ++own) {
        const double cost = std::max(modules[m].chosen_by[own - 1], least[m + 1][left - own]);
        if (cost >= least[m][left]) continue;
        least[m][left] = cost;
        taken[m][left] = static_cast<int>(own);
      }
  std::vector<int> counts;
  if (least.front().back() == kNone) return counts;
  auto left = static_cast<std::size_t>(stages);
  for (std::size_t m = 0; m < modules.size(); ++m) {
    counts.push_back(taken[m][left]);
    left -= static_cast<std::size_t>(counts.back());
  }
  return counts;
}

// Returns a layout with one stage of `ranks` ranks for every module.
std::variant<Layout, Infeasible> one_stage_each(const Scenario& scenario, int ranks) {
  const Model& model = scenario.model;
  const std::size_t language = language_module(model).value;
  Layout layout;
  layout.placement = Placement::non_colocated;
  layout.modules.resize(model.modules.size());
  int samples = 1;  // a microbatch
  if (scenario.layout) {
    layout.modules = scenario.layout->modules;
    layout.bridge = scenario.layout->bridge;
    samples = std::max(1, scenario.data.global_batch / (scenario.layout->modules[language].dp() *
                                                        scenario.layout->microbatches));
  }
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    ModuleLayout& grid = layout.modules[m];
    grid.pp = grid.vpp = 1;
    grid.ahead = 0;
    grid.blocks.clear();
    grid.first_rank = 0;
    if (ranks % (grid.tp * grid.cp) != 0)
      return Infeasible{model.modules[m].name +
                        ": the ranks of a stage must be a multiple of tp·cp = " +
                        std::to_string(grid.tp * grid.cp) + " (got " + std::to_string(ranks) +
                        "); use another number of stages"};
    grid.ranks = ranks;
  }
  layout.microbatches =
      std::max(1, scenario.data.global_batch / (layout.modules[language].dp() * samples));
  return layout;
}

// Returns the layout of a distribution of stages, each module split by time; every stage has the
// ranks of `one_each`.
JointSplit make_split(const Scenario& scenario, const Layout& one_each,
                      const std::vector<Pipelines>& modules, const std::vector<int>& stages) {
  const Model& model = scenario.model;
  JointSplit joint{one_each, std::vector<Seconds>(model.modules.size())};
  int next = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const auto own = static_cast<std::size_t>(stages[i]);
    ModuleLayout& grid = joint.layout.modules[modules[i].module.value];
    grid.pp = stages[i];
    grid.ranks *= stages[i];
    grid.first_rank = next;
    next += grid.ranks;
    if (own > 1) grid.blocks = modules[i].blocks[own - 1];
    joint.bottleneck[modules[i].module.value] = Seconds(modules[i].costs[own - 1]);
  }
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const std::size_t owner = grid_owner(model, ModuleId(m)).value;
    if (owner == m) continue;
    joint.layout.modules[m] = joint.layout.modules[owner];
    joint.layout.modules[m].blocks.clear();
  }
  return joint;
}

// The module of the rank that needs the most memory, and whether that rank exceeds its memory.
struct Worst {
  std::size_t module = 0;
  bool lacks = false;
};
Worst worst_of(const std::vector<Pipelines>& modules, const Layout& layout, Bytes room,
               Screen& screen) {
  Worst worst;
  Bytes most{};
  for (std::size_t i = 0; i < modules.size(); ++i)
    for (int stage = 0; stage < layout.modules[modules[i].module.value].pp; ++stage)
      if (const Bytes held = screen.memory(layout, modules[i].module, stage); held > most) {
        most = held;
        worst.module = i;
      }
  worst.lacks = most > room;
  return worst;
}

// Returns the same distribution, split so that it fits in memory, with the costs of its stages;
// nothing if no split fits.
std::optional<JointSplit> refitted(const Scenario& scenario, const HardwareProfile& profile,
                                   const Splitting& by, const std::vector<WorkSize>& typical,
                                   const std::vector<Pipelines>& modules, JointSplit joint,
                                   Screen& screen) {
  Layout& layout = joint.layout;
  for (ModuleLayout& grid : layout.modules) grid.blocks.clear();
  layout = with_blocks(layout, balanced_plan(scenario, layout, profile, typical));
  if (screen.footprint(layout).memory > scenario.cluster.device.memory) return {};
  for (const Pipelines& of : modules) {
    const ModuleLayout& grid = layout.modules[of.module.value];
    if (grid.pp == 1) continue;
    std::vector<int> ranks(static_cast<std::size_t>(grid.pp));
    std::iota(ranks.begin(), ranks.end(), 0);
    const Chain chain = chain_of(scenario.model, layout, by, {of.module}, grid, ranks);
    joint.bottleneck[of.module.value] = Seconds(bottleneck_cost(chain, grid.blocks, ranks));
  }
  return joint;
}

}  // namespace

Seconds JointSplit::most() const { return *std::max_element(bottleneck.begin(), bottleneck.end()); }

std::variant<JointSplit, Infeasible> joint_split(const Scenario& scenario,
                                                 const HardwareProfile& profile, int stages,
                                                 Balance balance) {
  const Model& model = scenario.model;
  const int ranks = scenario.cluster.ranks();
  if (stages < 1 || ranks % stages != 0)
    return Infeasible{"the number of stages must divide the " + std::to_string(ranks) +
                      " ranks (got " + std::to_string(stages) + ")"};
  auto made = one_stage_each(scenario, ranks / stages);
  if (const auto* no = std::get_if<Infeasible>(&made)) return *no;
  Layout one_each = std::get<Layout>(std::move(made));
  one_each.balance = balance;
  const Batch batch = typical_batch(scenario);
  const std::vector<WorkSize> typical = module_sizes(model, batch);
  const Splitting by = splitting(scenario, one_each, profile, typical);
  std::vector<Pipelines> modules;
  std::size_t blocks = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
    modules.push_back(pipelines_of(scenario, one_each, by, ModuleId(m), stages, balance));
    blocks += modules.back().blocks.size();
  }
  std::vector<int> fewest(modules.size(), 1);
  std::vector<int> stages_of = distribute(modules, fewest, stages);
  if (stages_of.empty())
    return Infeasible{"cannot distribute " + std::to_string(stages) + " stages over " +
                      std::to_string(modules.size()) + " modules with at least " +
                      std::to_string(blocks) +
                      " blocks in total: each module needs a stage, and each stage a block"};
  const JointSplit quickest = make_split(scenario, one_each, modules, stages_of);
  const Bytes room = scenario.cluster.device.memory;
  if (room.value == 0 || balance == Balance::unaware) return quickest;
  Screen screen(scenario, profile, batch);
  std::optional<JointSplit> best;
  for (; !stages_of.empty(); stages_of = distribute(modules, fewest, stages)) {
    JointSplit joint = make_split(scenario, one_each, modules, stages_of);
    if (best && joint.most() >= best->most()) break;
    if (check_layout(scenario, joint.layout)) break;
    const Worst worst = worst_of(modules, joint.layout, room, screen);
    if (!worst.lacks) return joint;
    if (auto fits = refitted(scenario, profile, by, typical, modules, joint, screen);
        fits && (!best || fits->most() < best->most()))
      best = std::move(fits);
    fewest[worst.module] = stages_of[worst.module] + 1;
  }
  return best ? *best : quickest;
}

}  // namespace polyphony
