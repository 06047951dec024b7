#include "shared/planner/makespan_bound.h"

#include <algorithm>
#include <queue>

#include "shared/planner/stage_graph.h"

namespace polyphony {
namespace {

// Longest paths through the graph (for heads) or its mirror (for tails). An action's head is the
// longest path to its start.
class Ways {
 public:
  // `chain`: seconds of an action until dependent actions may start, by direction and node.
  Ways(const StageGraph& graph, std::array<std::vector<double>, 2> chain)
      : graph_(graph), chain_(std::move(chain)) {
    for (auto& head : heads_) head.assign(graph.kept.size(), 0.0);
    const int stages = static_cast<int>(graph.stages.size());
    // A stage comes after those that send to it, and lower branches feed higher ones.
    for (int s = 0; s < stages; ++s) fill(kForward, s);
    for (int s = stages; s-- > 0;) fill(kBackward, s);
  }
  double head(int direction, std::size_t node) const {
    return heads_[std::size_t(direction)][node];
  }

 private:
  void fill(int direction, int s) {
    const auto d = std::size_t(direction);
    const StageGraph::Stage& stage = graph_.stages[std::size_t(s)];
    if (!stage.runs[d]) return;
    for (int p = 0; p < stage.works; ++p) {
      const std::size_t node = stage.first + std::size_t(p);
      double head = 0;
      if (direction == kBackward && stage.runs[kForward])
        head = heads_[kForward][node] + chain_[kForward][node];
      if (direction == kForward)
        for (const int from : stage.from) head = std::max(head, come(kForward, s, from, node));
      else if (stage.to >= 0)
        head = std::max(head, come(kBackward, s, stage.to, node));
      heads_[d][node] = head;
    }
  }

  double message(int direction, const StageGraph::Stage& to, std::size_t node,
                 const StageGraph::Stage& from, std::size_t sender) const {
    if (to.rank == from.rank) return 0;
    return graph_.message[direction == kForward ? sender : node];
  }

  // Returns the earliest time at which all inputs of `node` of stage s from stage `from` can
  // arrive.
  double come(int direction, int s, int from, std::size_t node) const {
    const auto d = std::size_t(direction);
    const StageGraph::Stage &to = graph_.stages[std::size_t(s)],
                            &sender = graph_.stages[std::size_t(from)];
    if (!sender.runs[d]) return 0;
    const int k = graph_.microbatch[node];
    double last = 0;
    for (int p = graph_.begin(sender.branch, k); p < graph_.end(sender.branch, k); ++p) {
      const std::size_t at = sender.first + std::size_t(p);
      last =
          std::max(last, heads_[d][at] + chain_[d][at] + message(direction, to, node, sender, at));
    }
    if (sender.branch == to.branch) return last;
    // All parts of the microbatch pass each stage of the other branch one after another, and the
    // last part continues from there.
    double rest = kNever;
    for (int p = graph_.begin(sender.branch, k); p < graph_.end(sender.branch, k); ++p)
      rest = std::min(rest, message(direction, to, node, sender, sender.first + std::size_t(p)));
    if (rest == kNever) return 0;
    const int step = direction == kForward ? -1 : 1;
    for (int i = from; i >= 0 && i < static_cast<int>(graph_.stages.size()) &&
                       graph_.stages[std::size_t(i)].branch == sender.branch;
         i += step) {
      const StageGraph::Stage& at = graph_.stages[std::size_t(i)];
      double first = kNever, sum = 0, shortest = kNever;
      for (int p = graph_.begin(at.branch, k); p < graph_.end(at.branch, k); ++p) {
        const std::size_t n = at.first + std::size_t(p);
        first = std::min(first, heads_[d][n]);
        sum += chain_[d][n];
        shortest = std::min(shortest, chain_[d][n]);
      }
      last = std::max(last, first + sum + rest);
      rest += shortest;
    }
    return last;
  }

  const StageGraph& graph_;
  std::array<std::vector<double>, 2> chain_, heads_;
};

// Shortest time from a forward's start to its backward's end.
std::vector<double> spans(const StageGraph& graph) {
  std::vector<double> result(graph.kept.size());
  for (std::size_t s = graph.stages.size(); s-- > 0;) {
    const StageGraph::Stage& stage = graph.stages[s];
    for (std::size_t node = stage.first; node < stage.first + std::size_t(stage.works); ++node) {
      if (stage.to >= 0) {
        const StageGraph::Stage& next = graph.stages[std::size_t(stage.to)];
        const double there = next.rank == stage.rank ? 0 : 2 * graph.message[node];
        const int k = graph.microbatch[node];
        for (int p = graph.begin(next.branch, k); p < graph.end(next.branch, k); ++p)
          result[node] = std::max(result[node], there + result[next.first + std::size_t(p)]);
      }
      result[node] += graph.seconds[kForward][node];
      if (stage.runs[kBackward]) result[node] += graph.seconds[kBackward][node];
    }
  }
  return result;
}

}  // namespace

double preemptive_makespan(std::vector<OneMachineJob> jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const OneMachineJob& a, const OneMachineJob& b) { return a.head < b.head; });
  struct Waiting {
    double tail, left;
    bool operator<(const Waiting& other) const { return tail < other.tail; }
  };
  std::priority_queue<Waiting> waiting;
  double now = 0, last = 0;
  for (std::size_t next = 0; next < jobs.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next)
      waiting.push({jobs[next].tail, jobs[next].length});
    Waiting job = waiting.top();
    waiting.pop();
    const double until = next < jobs.size() ? jobs[next].head : kNever;
    if (now + job.left <= until) {
      now += job.left;
      last = std::max(last, now + job.tail);
    } else {
      job.left -= until - now;
      now = until;
      waiting.push(job);
    }
  }
  return last;
}

Seconds MakespanBound::value() const { return std::max({path, rank, memory}); }

MakespanBound makespan_bound(const StepCosts& costs, bool apart) {
  const StageGraph graph(costs, microbatches_in_order(costs), apart);
  // `chain`: the part of a backward that other actions wait for; `later`: its weight part.
  const std::vector<double>& later = graph.seconds[kWeight];
  const std::array<std::vector<double>, 2> chain{graph.seconds[kForward], graph.seconds[kBackward]};
  const Ways to(graph, chain);
  const StageGraph mirror = graph.mirrored();
  // Returns the node of the same (stage, microbatch) in the mirror, where places count from the
  // end.
  const auto across = [&](std::size_t node, const StageGraph::Stage& stage) {
    return stage.first + std::size_t(stage.works - 1) - (node - stage.first);
  };
  std::array<std::vector<double>, 2> back;
  for (auto& of : back) of.resize(graph.kept.size());
  for (const StageGraph::Stage& stage : graph.stages)
    for (std::size_t node = stage.first; node < stage.first + std::size_t(stage.works); ++node)
      for (const int d : {kForward, kBackward})
        back[std::size_t(1 - d)][across(node, stage)] = chain[std::size_t(d)][node];
  const Ways from(mirror, back);

  MakespanBound bound;
  const std::vector<double> held = spans(graph);
  for (int r = 0; r < graph.ranks; ++r) {
    std::vector<OneMachineJob> jobs;
    double least_head = kNever, least_tail = kNever, area = 0;
    for (const int s : graph.on_rank[std::size_t(r)]) {
      const StageGraph::Stage& stage = graph.stages[std::size_t(s)];
      for (std::size_t node = stage.first; node < stage.first + std::size_t(stage.works); ++node) {
        for (const int d : {kForward, kBackward}) {
          if (!stage.runs[std::size_t(d)]) continue;
          const double length = chain[std::size_t(d)][node], head = to.head(d, node);
          double tail = from.head(1 - d, across(node, stage));
          if (d == kBackward) tail = std::max(tail, later[node]);
          jobs.push_back({head, length, tail});
          if (d == kBackward && later[node] > 0) jobs.push_back({head + length, later[node], 0});
          bound.path = std::max(bound.path, Seconds(head + length + tail));
        }
        if (graph.kept[node] == 0) continue;
        least_head = std::min(least_head, to.head(kForward, node));
        least_tail = std::min(least_tail, from.head(kForward, across(node, stage)));
        area += static_cast<double>(graph.kept[node]) * (held[node] + later[node]);
      }
    }
    bound.rank = std::max(bound.rank, Seconds(preemptive_makespan(jobs)));
    if (graph.limited && area > 0)
      bound.memory = std::max(bound.memory,
                              Seconds(area / static_cast<double>(graph.capacity[std::size_t(r)]) +
                                      least_head + least_tail));
  }
  return bound;
}

}  // namespace polyphony
