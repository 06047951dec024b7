#include "shared/planner/timetable.h"

#include <algorithm>
#include <array>
#include <set>

#include "shared/schedule/orders.h"

namespace polyphony {
namespace {

class Player {
 public:
  Player(const StepCosts& costs, const std::vector<Actions>& orders)
      : costs_(costs), orders_(orders), next_(orders.size(), 0), free_(orders.size(), 0) {
    table_.ranks.resize(orders.size());
    table_.busy.resize(orders.size());
    table_.peak.resize(orders.size());
    held_.resize(orders.size());
    for (const BranchCosts& branch : costs.branches) {
      stages_.emplace_back(static_cast<std::size_t>(branch.stages()));
      for (StageState& stage : stages_.back()) {
        stage.ended.fill(std::vector<double>(branch.microbatch_of.size(), kNever));
        for (auto& arrived : stage.arrived) arrived.assign(costs.branches.size(), 0.0);
      }
    }
  }

  std::variant<Timetable, Infeasible> play() {
    if (std::string fault = check(); !fault.empty()) return Infeasible{fault};
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < orders_.size(); ++r)
        while (next_[r] < orders_[r].size() && ready(orders_[r][next_[r]])) {
          run(r);
          moved = true;
        }
    }
    if (std::string stuck = cycle(); !stuck.empty())
      return Infeasible{"actions wait for each other: " + stuck};
    return table_;
  }

 private:
  enum Direction : std::size_t { kForward, kBackward, kWeight };
  static Direction direction(const Action& action) {
    return is_forward(action)                           ? kForward
           : action.kind == ActionKind::backward_weight ? kWeight
                                                        : kBackward;
  }
  struct StageState {
    std::array<std::vector<double>, 3> ended;    // by direction, work
    std::array<std::vector<int>, 2> order;       // works in the order in which they run
    std::array<std::vector<double>, 2> arrived;  // arrival of the last message, by sending branch
    std::array<std::size_t, 2> begun{};          // number of works that have run
  };

  std::string name(const Action& action) const {
    return describe(action) + " of " + costs_.branches[action.branch].name;
  }
  StageState& state(std::size_t branch, int stage) {
    return stages_[branch][static_cast<std::size_t>(stage)];
  }
  int rank_of(std::size_t branch, int stage) const {
    return costs_.branches[branch].rank_of_stage[static_cast<std::size_t>(stage)];
  }
  // Returns the works of a branch that belong to a microbatch: [begin, end).
  std::pair<int, int> works(std::size_t branch, int microbatch) const {
    const std::vector<int>& of = costs_.branches[branch].microbatch_of;
    const auto [begin, end] = std::equal_range(of.begin(), of.end(), microbatch);
    return {static_cast<int>(begin - of.begin()), static_cast<int>(end - of.begin())};
  }
  int microbatch(const Action& action) const {
    return costs_.branches[action.branch].microbatch_of[static_cast<std::size_t>(action.work)];
  }

  // Returns the (branch, stage) pairs that send to this stage in a direction.
  std::vector<std::pair<std::size_t, int>> senders(std::size_t branch, int stage,
                                                   Direction way) const {
    std::vector<std::pair<std::size_t, int>> result;
    const BranchCosts& of = costs_.branches[branch];
    if (way == kForward) {
      if (stage > 0) return {{branch, stage - 1}};
      for (std::size_t b = 0; b < costs_.branches.size(); ++b)
        if (costs_.branches[b].feeds == branch)
          result.emplace_back(b, costs_.branches[b].stages() - 1);
    } else if (stage + 1 < of.stages()) {
      result.emplace_back(branch, stage + 1);
    } else if (of.feeds && costs_.branches[*of.feeds].learns) {
      result.emplace_back(*of.feeds, 0);
    }
    return result;
  }

  std::string check() {
    for (std::size_t r = 0; r < orders_.size(); ++r)
      for (const Action& action : orders_[r]) {
        const std::string where = "rank " + std::to_string(r) + ": ";
        if (action.branch >= costs_.branches.size())
          return where + "an action names a branch that does not exist";
        const BranchCosts& branch = costs_.branches[action.branch];
        if (action.stage >= branch.stages() || action.work < 0 || action.work >= branch.works())
          return where + name(action) + " does not exist: the branch has " +
                 std::to_string(branch.stages()) + " stages and " + std::to_string(branch.works()) +
                 " microbatches";
        if (rank_of(action.branch, action.stage) != static_cast<int>(r))
          return where + name(action) + " belongs to rank " +
                 std::to_string(rank_of(action.branch, action.stage));
        StageState& stage = state(action.branch, action.stage);
        double& seen = stage.ended[direction(action)][static_cast<std::size_t>(action.work)];
        if (seen < 0) return where + name(action) + " runs twice";
        seen = -1;
        if (action.kind == ActionKind::backward)
          stage.ended[kWeight][static_cast<std::size_t>(action.work)] = -1;
        if (action.kind != ActionKind::backward_weight)
          stage.order[direction(action)].push_back(action.work);
      }
    for (std::size_t b = 0; b < costs_.branches.size(); ++b)
      for (int s = 0; s < costs_.branches[b].stages(); ++s)
        if (std::string fault = lost(b, s); !fault.empty()) return fault;
    for (std::size_t b = 0; b < costs_.branches.size(); ++b)
      for (int s = 0; s < costs_.branches[b].stages(); ++s)
        if (std::string fault = crossed(b, s); !fault.empty()) return fault;
    for (auto& branch : stages_)
      for (StageState& stage : branch)
        for (auto& ended : stage.ended) std::fill(ended.begin(), ended.end(), kNever);
    return "";
  }

  std::string lost(std::size_t b, int s) {
    const BranchCosts& branch = costs_.branches[b];
    for (const Direction way : {kForward, kBackward, kWeight})
      for (int w = 0; (way == kForward || branch.learns) && w < branch.works(); ++w)
        if (state(b, s).ended[way][static_cast<std::size_t>(w)] == kNever)
          return "no rank runs " + std::string(1, "FBW"[way]) + " microbatch " + std::to_string(w) +
                 " of stage " + std::to_string(s) + " of " + branch.name;
    return "";
  }
  std::string crossed(std::size_t b, int s) {
    for (const Direction way : {kForward, kBackward})
      for (const auto& [from, at] : senders(b, s, way))
        if ((way == kForward || costs_.branches[b].learns) && rank_of(from, at) != rank_of(b, s) &&
            microbatch_order(b, s, way, from) != microbatch_order(from, at, way, b))
          return "stage " + std::to_string(at) + " of " + costs_.branches[from].name +
                 " sends microbatches in a different order than stage " + std::to_string(s) +
                 " of " + costs_.branches[b].name + " receives them";
    return "";
  }

  // Returns the microbatches in a stage's order, without those of which branch `other` has no
  // works.
  std::vector<int> microbatch_order(std::size_t b, int s, Direction way, std::size_t other) {
    std::vector<int> result;
    for (const int work : state(b, s).order[way]) {
      const int k = costs_.branches[b].microbatch_of[static_cast<std::size_t>(work)];
      const auto [begin, end] = works(other, k);
      if (begin < end && (result.empty() || result.back() != k)) result.push_back(k);
    }
    return result;
  }

  bool ended(std::size_t b, int s, Direction way, int k) {
    const auto [begin, end] = works(b, k);
    const std::vector<double>& ends = state(b, s).ended[way];
    return std::none_of(ends.begin() + begin, ends.begin() + end,
                        [](double at) { return at == kNever; });
  }

  bool ready(const Action& action) {
    const Direction way = direction(action);
    const StageState& stage = state(action.branch, action.stage);
    const auto w = static_cast<std::size_t>(action.work);
    if (way == kWeight) return stage.ended[kBackward][w] != kNever;
    if (way == kBackward && stage.ended[kForward][w] == kNever) return false;
    for (const auto& [from, at] : senders(action.branch, action.stage, way))
      if (!ended(from, at, way, microbatch(action))) return false;
    return true;
  }

  // Returns the rank that a stuck rank waits for: the one with the missing input of its next
  // action.
  std::size_t awaited(std::size_t r) {
    const Action& action = orders_[r][next_[r]];
    const Direction way = direction(action);
    if (way != kWeight)
      for (const auto& [from, at] : senders(action.branch, action.stage, way))
        if (!ended(from, at, way, microbatch(action))) return std::size_t(rank_of(from, at));
    return r;  // waits for an earlier part on the same rank
  }
  // Follows stuck ranks to the ranks that they wait for, until a rank repeats; returns that cycle
  // as text, or empty if all actions have run.
  std::string cycle() {
    std::size_t r = 0;
    while (r < orders_.size() && next_[r] == orders_[r].size()) ++r;
    if (r == orders_.size()) return "";
    std::vector<bool> seen(orders_.size());
    for (; !seen[r]; r = awaited(r)) seen[r] = true;
    std::set<std::size_t> ranks;
    for (; ranks.insert(r).second;) r = awaited(r);
    std::string text;
    for (const std::size_t rank : ranks)
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) + " for " +
              name(orders_[rank][next_[rank]]);
    return text;
  }

  // Returns when the inputs over one link arrive.
  double arrive(const Action& action, Direction way, std::size_t from, int at) {
    StageState& stage = state(action.branch, action.stage);
    const StageState& sender = state(from, at);
    const auto [begin, end] = works(from, microbatch(action));
    double last = 0;
    if (rank_of(from, at) == rank_of(action.branch, action.stage)) {
      for (int w = begin; w < end; ++w)
        last = std::max(last, sender.ended[way][static_cast<std::size_t>(w)]);
      return last;
    }
    last = stage.arrived[way][from];
    const auto slots = static_cast<std::size_t>(costs_.receive_slots);
    if (const std::size_t begun = stage.begun[way]; begun >= slots) {
      const int before = stage.order[way][begun - slots];
      last = std::max(last, stage.ended[way][static_cast<std::size_t>(before)]);
    }
    for (const int w : sender.order[way])
      if (w >= begin && w < end)
        last = std::max(last, sender.ended[way][static_cast<std::size_t>(w)]) +
               (way == kForward
                    ? costs_.branches[from].cost(at, w).message
                    : costs_.branches[action.branch].cost(action.stage, action.work).message)
                   .count();
    return stage.arrived[way][from] = last;
  }

  void run(std::size_t r) {
    const Action& action = orders_[r][next_[r]++];
    const Direction way = direction(action);
    StageState& stage = state(action.branch, action.stage);
    const auto w = static_cast<std::size_t>(action.work);
    const StageCost& cost = costs_.branches[action.branch].cost(action.stage, action.work);
    double start = free_[r];
    if (way != kWeight) {
      for (const auto& [from, at] : senders(action.branch, action.stage, way))
        start = std::max(start, arrive(action, way, from, at));
      ++stage.begun[way];
    }
    Seconds length{};
    if (way == kForward) length = cost.forward;
    if (returns_gradient(action)) length = cost.input;
    if (action.kind == ActionKind::backward || way == kWeight) length += cost.weight;
    free_[r] = start + length.count();
    stage.ended[way][w] = free_[r];
    if (action.kind == ActionKind::backward) stage.ended[kWeight][w] = free_[r];
    table_.ranks[r].push_back({action, Seconds(start), Seconds(free_[r])});
    table_.makespan = std::max(table_.makespan, Seconds(free_[r]));
    table_.busy[r] += length;
    if (!costs_.branches[action.branch].learns) return;
    if (way == kForward) held_[r] += cost.kept;
    table_.peak[r] = std::max(table_.peak[r], held_[r]);
    if (action.kind == ActionKind::backward || way == kWeight) held_[r] -= cost.kept;
  }

  const StepCosts& costs_;
  const std::vector<Actions>& orders_;
  std::vector<std::size_t> next_;
  std::vector<double> free_;
  std::vector<Bytes> held_;
  std::vector<std::vector<StageState>> stages_;
  Timetable table_;
};

}  // namespace

std::variant<Timetable, Infeasible> timetable(const StepCosts& costs,
                                              const std::vector<Actions>& orders) {
  POLYPHONY_CHECK(orders.size() == static_cast<std::size_t>(costs.ranks),
                  orders.size() << " orders, " << costs.ranks << " ranks");
  return Player(costs, orders).play();
}

Seconds longest_rest(const Timetable& table) {
  Seconds longest{};
  for (std::size_t r = 0; r < table.ranks.size(); ++r)
    if (const auto& actions = table.ranks[r]; !actions.empty())
      longest = std::max(longest, actions.back().end - actions.front().start - table.busy[r]);
  return longest;
}

}  // namespace polyphony
