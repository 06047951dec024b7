#include "shared/planner/list_schedule.h"

#include <algorithm>

namespace polyphony {
namespace {

constexpr int kDirections[] = {kForward, kBackward, kWeight};

}  // namespace

Keys keys_in_turn(const StageGraph& graph) {
  Keys keys;
  const int stages = static_cast<int>(graph.stages.size());
  for (auto& of : keys.of) of.resize(graph.kept.size());
  for (int s = 0; s < stages; ++s) {
    const StageGraph::Stage& stage = graph.stages[static_cast<std::size_t>(s)];
    for (std::size_t node = stage.first; node < stage.first + std::size_t(stage.works); ++node) {
      keys.of[kForward][node] = graph.microbatch[node] * stages + stages - 1 - s;
      keys.of[kBackward][node] = graph.microbatch[node] * stages + s;
      keys.of[kWeight][node] =
          (graph.microbatches + graph.microbatch[node]) * stages + stages - 1 - s;
    }
  }
  return keys;
}

std::string too_large(const StepCosts& costs) {
  const StageGraph graph(costs, microbatches_in_order(costs));
  for (int r = 0; r < graph.ranks; ++r)
    for (int k = 0; k < graph.microbatches; ++k) {
      const std::int64_t full = graph.full[std::size_t(r)][std::size_t(k)];
      if (full > graph.capacity[std::size_t(r)])
        return "microbatch " + std::to_string(k) + " saves " + std::to_string(full) +
               " bytes of activations on rank " + std::to_string(r) + ", which has room for " +
               std::to_string(graph.capacity[std::size_t(r)]);
    }
  return "";
}

ListScheduler::ListScheduler(const StageGraph& graph) : graph_(graph) {
  for (const int d : kDirections) {
    queues_[std::size_t(d)].resize(graph.stages.size());
    end_[std::size_t(d)].resize(graph.kept.size());
    if (d == kWeight) continue;
    for (const StageGraph::Stage& stage : graph.stages) {
      const std::size_t links = d == kForward ? stage.from.size() : stage.to >= 0 ? 1 : 0;
      arrived_[std::size_t(d)].emplace_back(links, 0.0);
      coming_[std::size_t(d)].emplace_back(links, 0.0);
    }
  }
  ranks_.resize(static_cast<std::size_t>(graph.ranks));
}

// Returns when the last input of a microbatch over one link arrives.
double ListScheduler::arrive(int direction, int stage, std::size_t link, int sender, int place) {
  const auto d = std::size_t(direction), s = std::size_t(stage);
  const StageGraph::Stage &to = graph_.stages[s], &from = graph_.stages[std::size_t(sender)];
  const int k = graph_.microbatch[to.first + std::size_t(place)];
  const int begin = graph_.begin(from.branch, k), end = graph_.end(from.branch, k);
  if (to.rank == from.rank) return begin == end ? 0 : end_[d][from.first + std::size_t(end - 1)];
  double at = arrived_[d][s][link];
  if (place >= graph_.receive_slots)
    at = std::max(at, end_[d][to.first + std::size_t(place - graph_.receive_slots)]);
  for (int p = begin; p < end; ++p)
    at = std::max(at, end_[d][from.first + std::size_t(p)]) +
         graph_.message[direction == kForward ? from.first + std::size_t(p)
                                              : to.first + std::size_t(place)];
  return coming_[d][s][link] = at;
}

// Computes when the inputs of a stage's next microbatch are ready (kNever: not known yet).
void ListScheduler::refresh(int direction, int stage) {
  const auto d = std::size_t(direction), s = std::size_t(stage);
  const StageGraph::Stage& of = graph_.stages[s];
  Queue& queue = queues_[d][s];
  queue.ready = kNever;
  if (!of.runs[d] || queue.next == of.works) return;
  const int k = graph_.microbatch[of.first + std::size_t(queue.next)];
  const auto sent = [&](int sender) {
    const StageGraph::Stage& from = graph_.stages[std::size_t(sender)];
    return !from.runs[d] || queues_[d][std::size_t(sender)].next >= graph_.end(from.branch, k);
  };
  double ready = 0;
  // Waits for the other part of the backward, if that part runs first.
  const auto after_part = [&](int part) {
    if (queues_[std::size_t(part)][s].next <= queue.next) return false;
    ready = end_[std::size_t(part)][of.first + std::size_t(queue.next)];
    return true;
  };
  if (direction == kWeight) {
    if (of.gives == kWeight && !after_part(kBackward)) return;
  } else if (direction == kForward) {
    if (of.takes == kWeight && !after_part(kWeight)) return;
    for (const int sender : of.from)
      if (!sent(sender)) return;
    for (std::size_t link = 0; link < of.from.size(); ++link)
      if (graph_.stages[std::size_t(of.from[link])].runs[d])
        ready = std::max(ready, arrive(direction, stage, link, of.from[link], queue.next));
  } else {
    if (of.runs[kForward]) {
      if (queues_[kForward][s].next <= queue.next) return;
      ready = end_[kForward][of.first + std::size_t(queue.next)];
    }
    if (of.to >= 0) {
      if (!sent(of.to)) return;
      if (graph_.stages[std::size_t(of.to)].runs[d])
        ready = std::max(ready, arrive(direction, stage, 0, of.to, queue.next));
    }
  }
  queue.ready = ready;
}

bool ListScheduler::admits(int rank, std::size_t node) const {
  if (!graph_.limited || graph_.kept[node] == 0) return true;
  const auto r = std::size_t(rank);
  const RankState& state = ranks_[r];
  std::int64_t later = graph_.kept[node];
  const int k = graph_.microbatch[node];
  for (int at = std::max(state.top, k); at >= state.lead; --at) {
    const auto i = std::size_t(at);
    const std::int64_t most = state.takes[i] > 0 ? graph_.full[r][i] : state.held[i];
    if (at < k && later + most > graph_.capacity[r]) return false;
    later += state.held[i];
  }
  return true;
}

// Finds the action that the rank would run next, and its start.
void ListScheduler::look(int rank) {
  RankState& state = ranks_[std::size_t(rank)];
  if (orders_) {
    const std::vector<Placed>& order = (*orders_)[std::size_t(rank)];
    state.start = kNever;
    if (state.placed == order.size()) return;
    const Placed& next = order[state.placed];
    const Queue& queue = queues_[next.direction][next.stage];
    if (queue.next != next.place) return;
    state.start = std::max(state.free, queue.ready);
    state.direction = next.direction;
    state.stage = next.stage;
    return;
  }
  std::array<Best, 3> best;
  for (const int d : {kForward, kBackward}) best[std::size_t(d)] = best_of(d, rank);
  if (graph_.apart) best[kWeight] = best_of(kWeight, rank);
  state.direction = choose(rank, best);
  state.start = best[std::size_t(state.direction)].start;
  state.stage = best[std::size_t(state.direction)].stage;
}

ListScheduler::Best ListScheduler::best_of(int direction, int rank) const {
  const auto d = std::size_t(direction);
  const double free = ranks_[std::size_t(rank)].free;
  Best best;
  for (const int s : graph_.on_rank[std::size_t(rank)]) {
    const Queue& queue = queues_[d][std::size_t(s)];
    if (queue.ready == kNever) continue;
    const StageGraph::Stage& stage = graph_.stages[std::size_t(s)];
    const std::size_t node = stage.first + std::size_t(queue.next);
    const double start = std::max(free, queue.ready), key = keys_->of[d][node];
    if (start > best.start) continue;
    if (start == best.start && (key > best.key || (key == best.key && queue.ready >= best.ready)))
      continue;
    if (direction == stage.takes && !admits(rank, node)) continue;
    best = {start, key, queue.ready, s};
  }
  return best;
}

int ListScheduler::choose(int rank, const std::array<Best, 3>& best) const {
  const RankState& state = ranks_[std::size_t(rank)];
  int d = best[kForward].start < best[kBackward].start ? kForward : kBackward;
  if (best[kForward].start == best[kBackward].start)
    d = keys_->alternate ? 1 - state.last
                         : (best[kForward].key <= best[kBackward].key ? kForward : kBackward);
  const Best &other = best[std::size_t(d)], &weight = best[kWeight];
  if (weight.stage < 0) return d;
  const StageGraph::Stage& stage = graph_.stages[std::size_t(weight.stage)];
  const std::size_t node =
      stage.first + std::size_t(queues_[kWeight][std::size_t(weight.stage)].next);
  const bool fits = weight.start + graph_.seconds[kWeight][node] <= other.start;
  const bool first = !keys_->alternate && weight.start <= other.start && weight.key < other.key;
  return fits || first ? kWeight : d;
}

void ListScheduler::place(int rank, ListSchedule& result) {
  RankState& state = ranks_[std::size_t(rank)];
  const int direction = state.direction, s = state.stage;
  const auto d = std::size_t(direction);
  const StageGraph::Stage& stage = graph_.stages[std::size_t(s)];
  Queue& queue = queues_[d][std::size_t(s)];
  const int place = queue.next++;
  ++state.placed;
  const std::size_t node = stage.first + std::size_t(place);
  const auto k = std::size_t(graph_.microbatch[node]);
  result.start[d][node] = state.start;
  result.orders[std::size_t(rank)].push_back(
      {static_cast<std::uint8_t>(d), static_cast<std::uint16_t>(s), place});
  state.free = end_[d][node] = state.start + graph_.seconds[d][node];
  result.makespan = std::max(result.makespan, state.free);
  if (direction != kWeight) {
    state.last = direction;
    arrived_[d][std::size_t(s)] = coming_[d][std::size_t(s)];
  }
  if (direction == stage.takes) {
    state.held[k] += graph_.kept[node];
    state.takes[k] -= graph_.kept[node] > 0 ? 1 : 0;
    state.top = std::max(state.top, static_cast<int>(k));
  }
  if (direction == stage.gives) state.held[k] -= graph_.kept[node];
  --state.left[k];
  while (state.lead < graph_.microbatches && state.left[std::size_t(state.lead)] == 0) ++state.lead;

  refresh(direction, s);
  const auto tell = [&](int dir, int other) {
    refresh(dir, other);
    const int on = graph_.stages[std::size_t(other)].rank;
    if (on != rank) look(on);
  };
  if (direction == kForward) {
    if (queues_[kBackward][std::size_t(s)].next == place) refresh(kBackward, s);
    if (stage.to >= 0) tell(kForward, stage.to);
  } else if (direction == kBackward) {
    if (stage.gives == kWeight && queues_[kWeight][std::size_t(s)].next == place)
      refresh(kWeight, s);
    for (const int other : stage.from) tell(kBackward, other);
  } else if (stage.takes == kWeight && queues_[kForward][std::size_t(s)].next == place) {
    refresh(kForward, s);
  }
  look(rank);
}

bool ListScheduler::run(const Keys& keys, ListSchedule& result, double give_up) {
  keys_ = &keys;
  orders_ = nullptr;
  const bool done = place_all(result, give_up);
  POLYPHONY_CHECK(done || give_up < kNever, "actions wait for each other");
  return done;
}

bool ListScheduler::follow(const std::vector<std::vector<Placed>>& orders, ListSchedule& result,
                           double give_up) {
  orders_ = &orders;
  return place_all(result, give_up);
}

bool ListScheduler::place_all(ListSchedule& result, double give_up) {
  for (const int d : kDirections) {
    const auto direction = std::size_t(d);
    result.start[direction].assign(graph_.kept.size(), kNever);
    std::fill(queues_[direction].begin(), queues_[direction].end(), Queue{});
    if (d == kWeight) continue;
    for (auto& links : arrived_[direction]) std::fill(links.begin(), links.end(), 0.0);
    for (auto& links : coming_[direction]) std::fill(links.begin(), links.end(), 0.0);
  }
  result.makespan = 0;
  result.orders.resize(ranks_.size());
  for (auto& order : result.orders) order.clear();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankState& state = ranks_[r];
    state.free = 0;
    state.placed = 0;
    state.last = kBackward;
    state.lead = state.top = 0;
    state.held.assign(static_cast<std::size_t>(graph_.microbatches), 0);
    state.left = graph_.actions_of[r];
    state.takes = graph_.keeps_of[r];
    while (state.lead < graph_.microbatches && state.left[std::size_t(state.lead)] == 0)
      ++state.lead;
  }
  for (std::size_t s = 0; s < graph_.stages.size(); ++s)
    for (const int d : kDirections) refresh(d, static_cast<int>(s));
  for (int r = 0; r < graph_.ranks; ++r) look(r);
  for (std::size_t placed = 0; placed < graph_.actions; ++placed) {
    int next = 0;
    for (int r = 1; r < graph_.ranks; ++r)
      if (ranks_[std::size_t(r)].start < ranks_[std::size_t(next)].start) next = r;
    if (ranks_[std::size_t(next)].start >= give_up) return false;
    place(next, result);
  }
  return result.makespan < give_up;
}

}  // namespace polyphony
