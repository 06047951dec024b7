#include "shared/lower/fold.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "shared/step/assign.h"

namespace polyphony {
namespace {

Infeasible refuse(const std::string& why) {
  return {"the layout cannot be folded: " + why + "; predict it unfolded"};
}

// Returns the number of consecutive ranks of a lane.
int cell(const ModuleLayout& grid) { return grid.tp * grid.cp; }

// A module's grid, and into how many microbatches it cuts the step.
struct Paced {
  const ModuleLayout& grid;
  int microbatches = 0;
};

// Returns whether an encoder runs on every rank of the language module's pipeline.
bool spans_stages(const ModuleLayout& grid, const ModuleLayout& language) {
  return language.pp > 1 && grid.pp == 1 && same_ranks(grid, language);
}

// Returns why no plan with these two grids folds; null if one may.
const char* never_folds(const Paced& branch, const Paced& language) {
  const ModuleLayout &grid = branch.grid, &other = language.grid;
  const bool spans = spans_stages(grid, other), same = same_ranks(grid, other);
  if (spans && other.ranks / other.pp % cell(grid) != 0)
    return "a lane of an encoder spans several pipeline stages";
  if (!spans && same && grid.pp != other.pp)
    return "pipelines of different depths share their ranks";
  // Each of its lanes holds runs of several microbatches, and these belong to several lanes.
  if (branch.microbatches < language.microbatches && !(same && grid.pp == 1) &&
      std::max(grid.dp(), other.dp()) > 1)
    return "a microbatch of an encoder feeds several microbatches on several lanes";
  return nullptr;
}

class Folding {
 public:
  Folding(const Scenario& scenario, const Layout& layout, Plan& plan, const Batch& batch,
          bool varied)
      : scenario_(scenario),
        layout_(layout),
        plan_(plan),
        language_(plan.branches[plan.language]),
        batch_(batch),
        samples_(static_cast<int>(batch.samples.size())),
        varied_(varied) {}

  // Returns why the layout cannot be folded; empty if it can.
  std::optional<std::string> run() {
    for (const Branch& branch : plan_.branches)
      if (const char* why = never_folds({branch.grid, branch.microbatches},
                                        {language_.grid, language_.microbatches}))
        return why;
    aligned_ = std::all_of(plan_.branches.begin(), plan_.branches.end(),
                           [&](const Branch& branch) { return is_aligned(branch); });
    const bool by_items =
        std::any_of(plan_.branches.begin(), plan_.branches.end(), &Folding::assigns_items);
    if (varied_) find_loads();
    const bool even = !varied_ && samples_ % (language_.grid.dp() * layout_.microbatches) == 0;
    if (even && aligned_ && !by_items) find_sets();
    even_ = even && !by_items &&
            std::all_of(plan_.branches.begin(), plan_.branches.end(),
                        [&](const Branch& branch) { return is_even(branch); });
    bool folds = plan_.alike > 1;
    std::vector<Kept> kept;
    for (const Branch& branch : plan_.branches) {
      kept.push_back(kept_of(branch));
      const Kept& of = kept.back();
      folds = folds || of.span < of.lanes || of.stride > 1 || of.contexts < branch.grid.cp;
    }
    if (!folds) return "no two of its ranks do the same work";
    for (std::size_t b = 0; b < kept.size(); ++b) plan_.branches[b].kept = kept[b];
    return {};
  }

 private:
  // Returns the ranks per stage of the language module's pipeline.
  int stage_width() const { return language_.stage_ranks(); }
  // Returns whether the branch is an encoder that runs on every rank of a pipeline.
  bool spans_stages(const Branch& branch) const {
    return polyphony::spans_stages(branch.grid, language_.grid);
  }
  // Returns whether items are assigned one by one, so that the first lanes have the most, not the
  // last.
  static bool assigns_items(const Branch& branch) {
    return branch.grid.spread == Spread::images && branch.grid.cp * branch.grid.dp() > 1;
  }
  // Returns whether all lanes have equal numbers of samples.
  bool is_even(const Branch& branch) const {
    return samples_ / std::min(branch.microbatches, language_.microbatches) % branch.grid.dp() == 0;
  }

  // Returns how often consecutive ranks of a lane's cells are in different domains, over all
  // stages.
  int crossings(const Branch& branch, int lane) const {
    const int width = cell_ranks(branch.grid);
    int count = 0;
    for (int p = 0; p < branch.grid.pp && width > 1; ++p) {
      const int first = branch.grid.first_rank + p * branch.stage_ranks() +
                        lane * cell(branch.grid) / width * width;
      for (int rank = first + 1; rank < first + width; ++rank)
        count += domain(rank) == domain(rank - 1) ? 0 : 1;
    }
    return count;
  }
  int domain(int rank) const {
    return scenario_.cluster.domain_of(Rank(static_cast<std::size_t>(rank)));
  }
  bool is_aligned(const Branch& branch) const {
    for (int lane = 1; lane < branch.grid.dp(); ++lane)
      if (crossings(branch, lane) != crossings(branch, 0)) return false;
    return true;
  }

  // Computes the load of each lane, in FLOPs of transformer blocks: 24·H² per token, 4·H per pair.
  void find_loads() {
    const WorkTable table = assign_work(scenario_.model, plan_, batch_);
    for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
      const Branch& branch = plan_.branches[b];
      const ModuleId id = branch.stages.back().chunks.back().module;
      const ModuleId owner = grid_owner(scenario_.model, id);
      const Module& module = scenario_.model.modules[owner.value];
      const double hidden = module.hidden;
      std::vector<double>& loads = loads_.emplace_back(static_cast<std::size_t>(branch.grid.dp()));
      const Range works = table.of_branch(b);
      for (std::uint32_t w = works.begin; w < works.end; ++w) {
        const WorkSize size = work_size(scenario_.model, owner, batch_, table, table.works[w]);
        loads[table.works[w].lane] +=
            module.layers *
            (24 * hidden * static_cast<double>(size.tokens) + 4 * static_cast<double>(size.pairs)) *
            hidden;
      }
    }
  }

  // Finds the largest number of equal sets of lanes.
  void find_sets() {
    const auto divides = [&](int alike) {
      return std::all_of(plan_.branches.begin(), plan_.branches.end(), [&](const Branch& branch) {
        if (!spans_stages(branch)) return branch.grid.dp() % alike == 0;
        return stage_width() / alike % cell(branch.grid) == 0 && is_even(branch);
      });
    };
    plan_.alike = language_.grid.dp();
    while (plan_.alike > 1 && (language_.grid.dp() % plan_.alike != 0 || !divides(plan_.alike)))
      --plan_.alike;
  }

  Kept kept_of(const Branch& branch) const {
    const ModuleLayout& grid = branch.grid;
    Kept kept;
    kept.stride = 0;
    kept.period = spans_stages(branch) ? grid.dp() / language_.grid.pp : grid.dp();
    kept.lanes = kept.period / plan_.alike;
    kept.contexts = contexts_alike() ? 1 : grid.cp;
    bool same_cells = true, contexts = false, last = !even_;
    int width = 1;  // ranks that begin and end a lane of every branch on them
    for (const Branch& other : plan_.branches) {
      if (!same_ranks(grid, other.grid)) continue;
      same_cells = same_cells && other.grid.tp == grid.tp && other.grid.cp == grid.cp;
      contexts = contexts || other.grid.cp > 1;
      last = last && !varied_ && !assigns_items(other);
      width = std::lcm(width, cell(other.grid));
      kept.stride = std::gcd(kept.stride, other.grid.tp);
    }
    // If grids differ: the first rank of all, or the last.
    const bool one_rank = aligned_ && !contexts && (even_ || (last && !leads()));
    if (same_cells || one_rank) {
      kept.stride = grid.tp;
      width = cell(grid);
      if (!same_cells && last) kept.offset = grid.tp - 1;
    }
    kept.span = width / cell(grid);
    kept.first = aligned_ && !varied_
                     ? (last ? kept.lanes - kept.span : 0)
                     : worst_block(grid, width, kept.lanes * cell(grid) / width, last) * kept.span;
    return kept;
  }
  // Returns, of blocks of `width` ranks, the one whose cells cross domains most often; among those,
  // the one with the largest load, or the last.
  int worst_block(const ModuleLayout& grid, int width, int blocks, bool last) const {
    int worst = 0;
    double most = -1;
    for (int block = 0; block < blocks; ++block) {
      double count = 0;
      for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
        const Branch& other = plan_.branches[b];
        if (!same_ranks(grid, other.grid)) continue;
        const int span = width / cell(other.grid), period = blocks * span;
        for (int lane = block * span; lane < other.grid.dp(); lane += period)
          for (int i = lane; i < lane + span; ++i) {
            constexpr double kFirst = 1e40;  // crossings count before loads
            if (!aligned_) count += kFirst * crossings(other, i);
            if (varied_) count += loads_[b][static_cast<std::size_t>(i)];
          }
      }
      if (count > most || (last && count == most)) worst = block, most = count;
    }
    return worst;
  }
  bool leads() const { return layout_.bridge == Bridge::leader; }
  bool contexts_alike() const {
    const std::vector<Module>& modules = scenario_.model.modules;
    const TokenAssignment tokens = language_.grid.tokens;
    return modules.size() == 1 &&
           (tokens == TokenAssignment::balanced ||
            (tokens == TokenAssignment::zigzag && modules[0].mask == Mask::causal));
  }

  const Scenario& scenario_;
  const Layout& layout_;
  Plan& plan_;
  const Branch& language_;
  const Batch& batch_;
  const int samples_;
  const bool varied_;
  std::vector<std::vector<double>> loads_;  // by branch, lane
  bool even_ = false, aligned_ = false;
};

}  // namespace

std::variant<Folded, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan,
                                      const Batch& batch, Lanes lanes) {
  if (!scenario.cluster.degraded.empty()) return refuse("some of its ranks are degraded");
  if (layout.planner == Planning::entrain)
    return refuse("planner entrain gives every lane different samples");
  const std::vector<Sample>& samples = batch.samples;
  const bool varied = std::any_of(samples.begin(), samples.end(), [&](const Sample& s) {
    return s.items != samples.front().items;
  });
  if (varied && lanes == Lanes::alike)
    return refuse("samples differ, so that lanes do different work");
  if (const auto why = Folding(scenario, layout, plan, batch, varied).run()) return refuse(*why);
  const auto of_a_set = samples.size() / static_cast<std::size_t>(plan.alike);
  Batch kept{{samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(of_a_set)}};
  return Folded{std::move(plan), std::move(kept)};
}

bool may_fold(const Model& model, const Layout& layout) {
  const ModuleLayout& language = layout.modules[grid_owner(model, language_module(model)).value];
  const Paced paced{language, layout.microbatches};
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
    const ModuleLayout& grid = layout.modules[m];
    if (&grid != &language && never_folds({grid, encoder_works(layout, grid, language)}, paced))
      return false;
  }
  return true;
}

}  // namespace polyphony
