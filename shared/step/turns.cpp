#include "shared/step/turns.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "shared/error.h"
#include "shared/plan/links.h"

namespace polyphony {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

TurnOf turn_of(const Action& action) {
  if (is_forward(action)) return TurnOf::forward;
  return returns_gradient(action) ? TurnOf::backward : TurnOf::weight;
}

// The tasks of a step as a graph. Ranks that run a task together share a node: those of a cell, and
// all ranks of a stage if sharded gradients or parameters are exchanged after every action.
class TurnGraph {
 public:
  TurnGraph(const Model& model, const Plan& plan, const StepPlan& step, const Batch& batch)
      : model_(model), plan_(plan), step_(step), batch_(batch) {
    make_nodes();
    add_orders();
    for (const ChunkLink& link : make_links(model, plan))
      if (!link.local) join(link);
    add_departures();
  }

  std::vector<std::uint32_t> turns() const {
    const std::vector<std::uint32_t> levels = longest_paths();
    std::vector<std::uint32_t> turns;
    for (const Work& work : step_.works.works) {
      ChunkPlace place{work.branch};
      for (const Stage& stage : plan_.branches[work.branch].stages) {
        for (place.chunk = 0; place.chunk < stage.chunks.size(); ++place.chunk)
          for (const TurnOf what : {TurnOf::forward, TurnOf::backward, TurnOf::weight}) {
            const std::uint32_t node = node_of(work, place, what);
            turns.push_back(runs_[node] ? levels[node] : 0);
          }
        ++place.stage;
      }
    }
    return turns;
  }

 private:
  struct Edge {
    std::uint32_t before, after;
    auto operator<=>(const Edge&) const = default;
  };
  // The nodes of one stage: by the ranks that run together, microbatch, chunk and TurnOf.
  struct OfStage {
    std::uint32_t first = 0;
    std::size_t branch = 0, stage = 0, chunks = 0;
  };

  static bool together(const ModuleLayout& grid) {
    return grid.shard >= Shard::gradients && grid.dp() > 1;
  }
  // Returns the number of ranks of a stage that run together.
  static int width(const Branch& branch) {
    return together(branch.grid) ? branch.stage_ranks() : cell_ranks(branch.grid);
  }

  void make_nodes() {
    std::size_t nodes = 0;
    for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
      const Branch& branch = plan_.branches[b];
      POLYPHONY_CHECK(!branch.folded(), "turns are those of whole plans");
      first_stage_.push_back(stages_.size());
      for (std::size_t s = 0; s < branch.stages.size(); ++s) {
        const std::size_t chunks = branch.stages[s].chunks.size();
        stages_.push_back({static_cast<std::uint32_t>(nodes), b, s, chunks});
        nodes += static_cast<std::size_t>(branch.stage_ranks() / width(branch)) *
                 static_cast<std::size_t>(branch.microbatches) * chunks * kTurnsOfAChunk;
      }
    }
    POLYPHONY_CHECK(nodes < kNone, "a step of " << nodes << " tasks");
    runs_.resize(nodes);
  }
  // `place`: of a rank within its stage.
  std::uint32_t node_at(std::size_t branch, std::size_t stage, int place, std::size_t microbatch,
                        std::size_t chunk, TurnOf what) const {
    const Branch& at = plan_.branches[branch];
    const OfStage& of = stages_[first_stage_[branch] + stage];
    const auto group = static_cast<std::size_t>(place / width(at));
    const std::size_t work = group * static_cast<std::size_t>(at.microbatches) + microbatch;
    return of.first + static_cast<std::uint32_t>((work * of.chunks + chunk) * kTurnsOfAChunk +
                                                 static_cast<std::size_t>(what));
  }
  std::uint32_t node_of(const Work& work, const ChunkPlace& place, TurnOf what) const {
    const ModuleLayout& grid = plan_.branches[work.branch].grid;
    return node_at(work.branch, place.stage, static_cast<int>(work.lane) * grid.tp * grid.cp,
                   work.index, place.chunk, what);
  }

  // Adds what every rank runs one after another, once for ranks that run the same nodes.
  void add_orders() {
    std::set<std::pair<std::uint32_t, std::vector<int>>> known;
    for (std::size_t rank = 0; rank < step_.order_of.size(); ++rank) {
      std::vector<int> groups;
      for (const Branch& branch : plan_.branches) {
        const int place = branch.place_of(Rank(rank));
        groups.push_back(place < 0 ? -1 : place % branch.stage_ranks() / width(branch));
      }
      if (!known.emplace(step_.order_of[rank], std::move(groups)).second) continue;
      distinct_.push_back(rank);
      std::uint32_t before = kNone;
      each_task(rank, [&](const Action&, std::uint32_t node) {
        runs_[node] = true;
        if (before != kNone) orders_.push_back({before, node});
        before = node;
      });
    }
  }
  // Forward tasks of an action are in the order of the chunks, others in the opposite order.
  template <class Visit>
  void each_task(std::size_t rank, Visit visit) const {
    for (const Action& action : step_.orders[step_.order_of[rank]]) {
      const std::size_t chunks = stages_[first_stage_[action.branch] + action.stage].chunks;
      for (std::size_t i = 0; i < chunks; ++i)
        visit(action,
              node_for(rank, action, is_forward(action) ? i : chunks - 1 - i, turn_of(action)));
    }
  }
  std::uint32_t node_for(std::size_t rank, const Action& action, std::size_t chunk,
                         TurnOf what) const {
    const Branch& branch = plan_.branches[action.branch];
    return node_at(action.branch, action.stage, branch.place_of(Rank(rank)) % branch.stage_ranks(),
                   static_cast<std::size_t>(action.work), chunk, what);
  }

  void join(const ChunkLink& link) {
    const auto work = [&](std::size_t branch, std::uint32_t number) -> const Work& {
      return step_.works.works[step_.works.first_work[branch] + number];
    };
    const auto add = [&](const Work& from, const Work& to) {
      forwards_.push_back({node_of(from, link.producer, TurnOf::forward),
                           node_of(to, link.consumer, TurnOf::forward)});
      if (link.input.gradient)
        backwards_.push_back({node_of(to, link.consumer, TurnOf::backward),
                              node_of(from, link.producer, TurnOf::backward)});
    };
    if (link.producer.branch == link.consumer.branch && link.input.edge < 0) {
      const Range works = step_.works.of_branch(link.producer.branch);
      for (std::uint32_t w = 0; w < works.size(); ++w)
        if (const Work& same = work(link.producer.branch, w); same.context == 0) add(same, same);
      return;
    }
    for (const RowRun& run : make_runs(model_, plan_, link, step_.works, batch_).runs)
      add(work(link.producer.branch, run.producer_work),
          work(link.consumer.branch, run.consumer_work));
  }

  // In a stage without a backward, a forward waits until the rows of an earlier one have left.
  void add_departures() {
    std::sort(forwards_.begin(), forwards_.end());
    forwards_.erase(std::unique(forwards_.begin(), forwards_.end()), forwards_.end());
    for (const std::size_t rank : distinct_) {
      std::map<std::pair<int, int>, Action> left;  // by branch and stage
      for (const Action& action : step_.orders[step_.order_of[rank]]) {
        if (visited(action)) continue;
        const std::pair<int, int> stage(action.branch, action.stage);
        if (returns_gradient(action)) {
          left[stage] = action;
          continue;
        }
        const auto sent = left.find(stage);
        if (!is_forward(action) || sent == left.end()) continue;
        const std::uint32_t now = node_for(rank, action, 0, TurnOf::forward);
        const std::size_t chunks = stages_[first_stage_[action.branch] + action.stage].chunks;
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
          const std::uint32_t made = node_for(rank, sent->second, chunk, TurnOf::forward);
          for (auto edge = std::lower_bound(forwards_.begin(), forwards_.end(), Edge{made, 0});
               edge != forwards_.end() && edge->before == made; ++edge)
            departures_.push_back({edge->after, now});
        }
      }
    }
  }
  bool visited(const Action& action) const {
    const Stage& stage = plan_.branches[action.branch].stages[action.stage];
    return std::any_of(stage.chunks.begin(), stage.chunks.end(),
                       [&](const Chunk& chunk) { return needs_backward(model_, chunk.module); });
  }

  template <class Visit>
  void each_edge(Visit visit) const {
    for (const std::vector<Edge>* edges : {&orders_, &forwards_, &backwards_, &departures_})
      for (const Edge& edge : *edges)
        if (runs_[edge.before] && runs_[edge.after]) visit(edge);
  }

  std::vector<std::uint32_t> longest_paths() const {
    const std::size_t nodes = runs_.size();
    std::vector<std::uint32_t> levels(nodes, 1), missing(nodes, 0), begin(nodes + 1, 0);
    each_edge([&](const Edge& edge) {
      ++begin[edge.before + 1];
      ++missing[edge.after];
    });
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::uint32_t> after(begin.back()), next(begin.begin(), begin.end() - 1), ready;
    each_edge([&](const Edge& edge) { after[next[edge.before]++] = edge.after; });
    for (std::uint32_t node = 0; node < nodes; ++node)
      if (missing[node] == 0) ready.push_back(node);
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (std::uint32_t e = begin[ready[i]]; e < begin[ready[i] + 1]; ++e) {
        levels[after[e]] = std::max(levels[after[e]], levels[ready[i]] + 1);
        if (--missing[after[e]] == 0) ready.push_back(after[e]);
      }
    if (ready.size() < nodes) fail(missing);
    return levels;
  }

  // Reports a circle of tasks, each of which comes after the next.
  [[noreturn]] void fail(const std::vector<std::uint32_t>& missing) const {
    const auto before = [&](std::uint32_t node) {
      std::uint32_t found = kNone;
      each_edge([&](const Edge& edge) {
        if (found == kNone && edge.after == node && missing[edge.before] > 0) found = edge.before;
      });
      return found;
    };
    auto node = static_cast<std::uint32_t>(
        std::find_if(missing.begin(), missing.end(), [](std::uint32_t n) { return n > 0; }) -
        missing.begin());
    std::vector<std::uint32_t> path;
    while (std::find(path.begin(), path.end(), node) == path.end()) {
      path.push_back(node);
      node = before(node);
    }
    std::string text;
    for (auto at = std::find(path.begin(), path.end(), node); at != path.end(); ++at)
      text += (text.empty() ? "" : ", after ") + described(*at);
    POLYPHONY_CHECK(false, "tasks come after each other: " << text);
  }
  std::string described(std::uint32_t node) const {
    const auto next = std::upper_bound(
        stages_.begin(), stages_.end(), node,
        [](std::uint32_t value, const OfStage& stage) { return value < stage.first; });
    const OfStage& of = *std::prev(next);
    const std::size_t local = node - of.first, task = local / kTurnsOfAChunk;
    const std::size_t microbatch =
        task / of.chunks % static_cast<std::size_t>(plan_.branches[of.branch].microbatches);
    constexpr const char* kLetters = "FBW";
    return std::string(1, kLetters[local % kTurnsOfAChunk]) + std::to_string(microbatch) +
           " of chunk " + std::to_string(task % of.chunks) + " of stage " +
           std::to_string(of.stage) + " of branch " + std::to_string(of.branch);
  }

  const Model& model_;
  const Plan& plan_;
  const StepPlan& step_;
  const Batch& batch_;
  std::vector<OfStage> stages_;           // of all branches, ascending by `first`
  std::vector<std::size_t> first_stage_;  // by branch: position in stages_
  std::vector<bool> runs_;                // by node: some rank runs it
  std::vector<std::size_t> distinct_;     // ranks that stand for all that run the same nodes
  std::vector<Edge> orders_, forwards_, backwards_, departures_;
};

}  // namespace

std::vector<std::uint32_t> make_turns(const Model& model, const Plan& plan, const StepPlan& step,
                                      const Batch& batch) {
  POLYPHONY_CHECK(!step.only.valid(), "turns are made for all ranks at once");
  return TurnGraph(model, plan, step, batch).turns();
}

StepPlan make_queued_step(const Scenario& scenario, const Layout& layout, const Plan& plan,
                          const Batch& batch) {
  StepPlan step = make_step_plan(scenario, layout, plan, batch);
  step.turns = make_turns(scenario.model, plan, step, batch);
  return step;
}

TurnTable::TurnTable(const Plan& plan, const WorkTable& works,
                     const std::vector<std::uint32_t>& turns)
    : works_(works), turns_(turns) {
  std::size_t first = 0;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    OfBranch& branch = branches_.emplace_back();
    std::size_t chunks = 0;
    for (const Stage& stage : plan.branches[b].stages) {
      branch.chunks_before.push_back(chunks);
      chunks += stage.chunks.size();
    }
    branch.first = first;
    branch.width = chunks * kTurnsOfAChunk;
    first += works.of_branch(b).size() * branch.width;
  }
  POLYPHONY_CHECK(turns.empty() || turns.size() == first,
                  "a step with " << first << " turns has a table of " << turns.size());
}

std::vector<std::uint32_t> TurnTable::of(const std::vector<std::uint32_t>& works) const {
  std::vector<std::uint32_t> part;
  for (const std::uint32_t work : works) {
    const std::size_t number = works_.works[work].branch;
    const OfBranch& branch = branches_[number];
    const auto begin =
        turns_.begin() + static_cast<std::ptrdiff_t>(
                             branch.first + (work - works_.first_work[number]) * branch.width);
    part.insert(part.end(), begin, begin + static_cast<std::ptrdiff_t>(branch.width));
  }
  return part;
}

}  // namespace polyphony
