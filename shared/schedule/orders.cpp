#include "shared/schedule/orders.h"

#include <algorithm>

namespace polyphony {

int forward_lead(const Turns& order, int branch, int stage) {
  int forwards = 0, backwards = 0, lead = 0;
  for (const Turn& turn : order) {
    if (turn.branch != branch || turn.stage != stage) continue;
    if (is_forward(turn)) ++forwards;
    if (returns_gradient(turn)) lead = std::max(lead, forwards - ++backwards);
  }
  return lead;
}

bool covers(const std::vector<InFlight>& a, const std::vector<InFlight>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].tapes < b[i].tapes || a[i].weights < b[i].weights || a[i].both > b[i].both)
      return false;
  return true;
}

StagesInFlight in_flight(const Turns& order, int branch) {
  StagesInFlight load;
  for (const Turn& turn : order)
    if (turn.branch == branch) load.stages.push_back(turn.stage);
  std::sort(load.stages.begin(), load.stages.end());
  load.stages.erase(std::unique(load.stages.begin(), load.stages.end()), load.stages.end());
  std::vector<InFlight> now(load.stages.size());
  bool grown = false;
  const auto keep = [&] {
    if (!grown) return;
    grown = false;
    for (const auto& moment : load.moments)
      if (covers(moment, now)) return;
    std::erase_if(load.moments, [&](const auto& moment) { return covers(now, moment); });
    load.moments.push_back(now);
  };
  for (const Turn& turn : order) {
    if (turn.branch != branch) continue;
    const auto at = std::lower_bound(load.stages.begin(), load.stages.end(), turn.stage);
    InFlight& here = now[static_cast<std::size_t>(at - load.stages.begin())];
    switch (turn.kind) {
      case TurnKind::forward:
        ++here.tapes;
        grown = true;
        break;
      case TurnKind::backward:
        keep();
        --here.tapes;
        break;
      case TurnKind::backward_input:  // while it runs, both
        keep();
        ++here.weights;
        ++here.both;
        grown = true;
        keep();
        --here.tapes;
        --here.both;
        break;
      case TurnKind::backward_weight:
        keep();
        --here.weights;
        break;
    }
  }
  keep();
  return load;
}

int tapes_in_flight(const Turns& order, int branch) {
  int now = 0, most = 0;
  for (const Turn& turn : order) {
    if (turn.branch != branch) continue;
    now += is_forward(turn) ? 1 : returns_gradient(turn) ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

namespace {

struct Key {
  TurnKind kind;
  std::uint16_t stage;
  std::int32_t work;
  auto operator<=>(const Key&) const = default;
};
// B and I end the same thing.
Key key_of(TurnKind kind, int stage, int work) {
  if (kind == TurnKind::backward_input) kind = TurnKind::backward;
  return {kind, static_cast<std::uint16_t>(stage), work};
}

std::vector<Key> needs(const Turn& turn, int stages) {
  switch (turn.kind) {
    case TurnKind::forward:
      if (turn.stage == 0) return {};
      return {key_of(TurnKind::forward, turn.stage - 1, turn.work)};
    case TurnKind::backward:
    case TurnKind::backward_input:
      if (turn.stage + 1 == stages) return {key_of(TurnKind::forward, turn.stage, turn.work)};
      return {key_of(TurnKind::forward, turn.stage, turn.work),
              key_of(TurnKind::backward, turn.stage + 1, turn.work)};
    case TurnKind::backward_weight:
      return {key_of(TurnKind::backward, turn.stage, turn.work)};
  }
  return {};
}

int length(TurnKind kind, const Durations& durations) {
  switch (kind) {
    case TurnKind::forward:
      return durations.forward;
    case TurnKind::backward:
      return durations.backward;
    case TurnKind::backward_input:
      return durations.input;
    case TurnKind::backward_weight:
      return durations.weight;
  }
  return 0;
}

class Play {
 public:
  Play(const std::vector<Turns>& orders, int stages, const Durations& durations)
      : orders_(orders), stages_(stages), durations_(durations), at_(orders.size(), 0) {
    for (std::size_t r = 0; r < orders.size(); ++r)
      for (const Turn& turn : orders[r]) owner_[key_of(turn.kind, turn.stage, turn.work)] = r;
  }

  Played run() {
    Played played;
    played.starts.resize(orders_.size());
    std::vector<int> free(orders_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < orders_.size(); ++r)
        while (const std::optional<int> start = ready(r, free[r])) {
          const Turn& turn = orders_[r][at_[r]++];
          played.starts[r].push_back(*start);
          free[r] = *start + length(turn.kind, durations_);
          ended_[key_of(turn.kind, turn.stage, turn.work)] = free[r];
          moved = true;
        }
    }
    played.cycle = cycle();
    for (std::size_t r = 0; r < orders_.size(); ++r) {
      played.end = std::max(played.end, free[r]);
      if (played.starts[r].empty()) continue;
      int work = 0;
      for (std::size_t i = 0; i < at_[r]; ++i) work += length(orders_[r][i].kind, durations_);
      played.bubble = std::max(played.bubble, free[r] - played.starts[r].front() - work);
    }
    return played;
  }

 private:
  std::optional<int> ready(std::size_t rank, int free) const {
    if (at_[rank] == orders_[rank].size()) return {};
    for (const Key& need : needs(orders_[rank][at_[rank]], stages_)) {
      const auto found = ended_.find(need);
      if (found == ended_.end()) return {};
      free = std::max(free, found->second);
    }
    return free;
  }
  // Each stuck rank's next turn waits for a turn that some rank would run later: follow that rank.
  std::vector<Turn> cycle() const {
    std::size_t rank = 0;
    while (rank < orders_.size() && at_[rank] == orders_[rank].size()) ++rank;
    std::vector<std::size_t> path;
    while (rank < orders_.size()) {
      if (const auto seen = std::find(path.begin(), path.end(), rank); seen != path.end()) {
        std::vector<Turn> turns;
        for (auto it = seen; it != path.end(); ++it) turns.push_back(orders_[*it][at_[*it]]);
        return turns;
      }
      path.push_back(rank);
      const Turn& turn = orders_[rank][at_[rank]];
      rank = orders_.size();
      for (const Key& need : needs(turn, stages_))
        if (!ended_.contains(need))
          if (const auto found = owner_.find(need); found != owner_.end()) rank = found->second;
      if (rank == orders_.size()) return {turn};  // what it needs is nobody's turn
    }
    return {};
  }

  const std::vector<Turns>& orders_;
  int stages_;
  Durations durations_;
  std::vector<std::size_t> at_;
  std::map<Key, int> ended_;
  std::map<Key, std::size_t> owner_;
};

}  // namespace

Played play(const std::vector<Turns>& orders, int stages, const Durations& durations) {
  return Play(orders, stages, durations).run();
}

std::string describe(const Turn& turn) {
  return std::string(1, letter(turn.kind)) + " microbatch " + std::to_string(turn.work) +
         " of stage " + std::to_string(turn.stage);
}

}  // namespace polyphony
