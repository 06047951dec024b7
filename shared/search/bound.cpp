#include "shared/search/bound.h"

#include <algorithm>
#include <vector>

#include "shared/search/stage_cost.h"
#include "shared/search/stage_memory.h"

namespace polyphony {
namespace {

// Rounding of flows to whole bytes, and of sums taken in another order than the graph's.
constexpr double kSlack = 1e-9;

// A bound holds for the machine as it should be, and so for any degraded one.
Scenario healthy(Scenario scenario) {
  scenario.cluster.degraded.clear();
  return scenario;
}

// What a scenario's closed forms are made of.
struct Forms {
  Forms(const Scenario& given, const HardwareProfile& known, const Batch& batch)
      : scenario(healthy(given)),
        profile(known),
        views(scenario, profile, batch),
        layers(scenario),
        costs(layers, profile, batch),
        memories(layers) {}
  Forms(const Forms&) = delete;  // its members refer to each other

  const Scenario scenario;
  const HardwareProfile profile;
  LayoutViews views;
  StackLayers layers;
  StageCosts costs;
  StageMemories memories;
};

struct ChainStage {
  StageCost cost;
  bool encoder = false;   // of another branch than the language module's
  bool crossing = false;  // the next stage belongs to another branch
  bool splits = false;    // weight parts are turns of their own
};

std::size_t chain_length(const LayoutView& view, std::size_t first_branch) {
  std::size_t length = 0;
  for (std::size_t b = first_branch; b < view.stages->size(); ++b)
    length += (*view.stages)[b].size();
  return length;
}

bool waits_with_weights(const std::vector<StagesInFlight>& ranks) {
  for (const StagesInFlight& rank : ranks)
    for (const std::vector<InFlight>& moment : rank.moments)
      for (const InFlight& stage : moment)
        if (stage.weights > 0) return true;
  return false;
}

std::vector<ChainStage> make_chain(Forms& forms, const LayoutView& view, std::size_t first_branch) {
  const std::size_t branches = view.stages->size();
  std::vector<ChainStage> chain;
  chain.reserve(chain_length(view, first_branch));
  for (std::size_t b = first_branch; b < branches; ++b) {
    const bool splits = waits_with_weights(forms.views.in_flight(view, b));
    for (std::size_t s = 0; s < (*view.stages)[b].size(); ++s) {
      chain.push_back({forms.costs.cost(view, b, s), b + 1 < branches, false, splits});
    }
    chain.back().crossing = b + 1 < branches;
  }
  return chain;
}

struct ChainEnd {
  Seconds reduced{};   // the last stage has reduced its gradients
  Seconds returned{};  // the first stage has ended its last backward, the pipeline filled and
                       // drained `fills` times
};

// The gradient of stage `from`'s last work item returns through the stages before it.
void return_gradient(const StageCosts& costs, const std::vector<ChainStage>& chain,
                     std::size_t from, Seconds reach, int fills, Seconds crossing, ChainEnd& end) {
  const Seconds once = reach + chain[from].cost.times.lane;
  Seconds done = once;
  end.reduced = std::max(end.reduced, done + chain[from].cost.reduction);
  if (chain[from].splits) {  // the gradient returns while weight parts are left
    end.returned = std::max(end.returned, once);
    return;
  }
  for (std::size_t s = from; s-- > 0;) {
    const ChainStage& stage = chain[s];
    // From the language module back to an encoder: some work item with images waits, if every
    // sample has one.
    const bool over_crossing = stage.encoder && !chain[from].encoder;
    const bool waits = over_crossing ? costs.coupled() : stage.cost.rows_flow;
    if (!waits || !stage.cost.has_backward) return;
    done += (stage.crossing ? crossing : stage.cost.message) +
            (over_crossing ? stage.cost.times.full_backward : stage.cost.times.backward);
    end.reduced = std::max(end.reduced, done + stage.cost.reduction);
  }
  end.returned = std::max(end.returned, done + (fills - 1) * (done - once + reach));
}

ChainEnd end_of(const StageCosts& costs, const std::vector<ChainStage>& chain, int fills) {
  const Cluster& cluster = costs.cluster();
  const Seconds crossing =
      costs.profile().message_latency +
      std::min({cluster.node_link.latency, cluster.fabric_link.latency,
                cluster.domain_size() < cluster.ranks_per_node ? cluster.bus.latency
                                                               : cluster.fabric_link.latency});
  ChainEnd end;
  Seconds reach{};  // of a lane's own first work item
  Seconds path{};   // of the smallest work item with tokens, to the next branch
  for (std::size_t s = 0; s < chain.size(); ++s) {
    const StageCost& here = chain[s].cost;
    return_gradient(costs, chain, s, reach, fills, crossing, end);
    if (chain[s].crossing) {
      reach = path = costs.coupled() ? path + here.times.full_forward + crossing : Seconds(0);
    } else {
      reach = here.rows_flow ? reach + here.times.forward + here.message : Seconds(0);
      path += here.times.full_forward + here.message;
    }
  }
  return end;
}

Seconds busiest_of(const std::vector<ChainStage>& chain) {
  Seconds busiest{};
  for (const ChainStage& stage : chain) busiest = std::max(busiest, stage.cost.times.lane);
  return busiest;
}

bool colocated(const LayoutView& view) {
  return view.stages->size() == 2 && view.layout->placement == Placement::colocated;
}

// A rank along a branch's pipeline: all its stages, at the moment when it holds most.
struct HeldByRank {
  Bytes fixed{}, held{}, transient{};
};
HeldByRank memory_of(Forms& forms, const LayoutView& view, std::size_t branch,
                     const StagesInFlight& flight) {
  HeldByRank rank;
  std::vector<StageMemory> stages;
  for (const std::uint16_t stage : flight.stages) {
    stages.push_back(forms.memories.memory(view, branch, stage));
    rank.fixed += stages.back().fixed;
    rank.transient = std::max(rank.transient, stages.back().transient);
  }
  for (const std::vector<InFlight>& moment : flight.moments) {
    Bytes held{};
    for (std::size_t i = 0; i < stages.size(); ++i) held += stages[i].held(moment[i]);
    rank.held = std::max(rank.held, held);
  }
  return rank;
}

Footprint worst_stage(Forms& forms, const LayoutView& view) {
  const std::size_t first_branch = colocated(view) ? 1 : 0;
  HeldByRank encoder;
  if (colocated(view)) encoder = memory_of(forms, view, 0, forms.views.in_flight(view, 0).front());
  Footprint worst;
  std::size_t worst_branch = 0, worst_index = 0;
  for (std::size_t b = first_branch; b < view.stages->size(); ++b) {
    const std::vector<StagesInFlight>& ranks = forms.views.in_flight(view, b);
    for (const StagesInFlight& flight : ranks) {
      const HeldByRank rank = memory_of(forms, view, b, flight);
      // The encoder's backward comes when the language module's tapes are gone.
      const Bytes memory = encoder.fixed + encoder.held + rank.fixed +
                           std::max(rank.held + rank.transient, encoder.transient);
      if (memory <= worst.memory) continue;
      worst.memory = memory;
      worst_branch = b;
      worst_index = flight.stages.front();
    }
  }
  worst.worst = forms.views.stage_name(view, worst_branch, worst_index);
  return worst;
}

Bound bound_chain(Forms& forms, const LayoutView& view) {
  const std::vector<ChainStage> chain = make_chain(forms, view, 0);
  Bound bound;
  Seconds update{};
  for (const ChainStage& stage : chain) update = std::max(update, stage.cost.update);
  bound.busiest = busiest_of(chain);
  bound.step = end_of(forms.costs, chain, 1).reduced +
               forms.costs.scalar_time(world_size(*view.layout)) + update;
  return bound;
}

// Every rank runs the encoder's work and one language stage's.
Bound bound_colocated(Forms& forms, const LayoutView& view) {
  StageCosts& costs = forms.costs;
  const StageCost encoder = costs.cost(view, 0, 0);
  const LayerTimes& times = encoder.times;
  const std::vector<ChainStage> language = make_chain(forms, view, 1);
  // Which encoder lane shares a rank with the busiest language lane is not looked at: the smallest
  // work item stands for all.
  const int works = view.plan.branches[0].microbatches;
  const Seconds one = times.forward + times.backward, beside = one * works;
  const Seconds before = costs.coupled() ? times.full_forward : times.forward;
  const Seconds after = costs.coupled() ? times.full_backward : times.backward;
  const ChainEnd chain = end_of(costs, language, works);
  Bound bound;
  Seconds update{}, end = before + chain.reduced + encoder.reductions;
  // The first stage's ranks run all work items one after another: encoder, the whole pipeline,
  // encoder.
  end = std::max(end, before + chain.returned + one * (works - 1) + after + encoder.reduction);
  for (const ChainStage& stage : language) {
    end = std::max(end, stage.cost.times.lane + beside + encoder.reduction);
    update = std::max(update, stage.cost.update);
  }
  bound.busiest = busiest_of(language) + beside;
  // One update op for both modules' parameters.
  const bool both = encoder.update.count() > 0 && update.count() > 0;
  const Seconds updates =
      update + encoder.update - (both ? costs.profile().optimizer_overhead : Seconds(0));
  bound.step = end + costs.scalar_time(world_size(*view.layout)) + updates;
  return bound;
}

}  // namespace

struct Screen::Impl {
  Forms forms;
};

Screen::Screen(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch)
    : impl_(new Impl{Forms(scenario, profile, batch)}) {}
Screen::~Screen() = default;

Footprint Screen::footprint(const Layout& layout) {
  return worst_stage(impl_->forms, impl_->forms.views.look(layout));
}

Bound Screen::bound(const Layout& layout) {
  Forms& forms = impl_->forms;
  const LayoutView view = forms.views.look(layout);
  Bound bound = colocated(view) ? bound_colocated(forms, view) : bound_chain(forms, view);
  bound.step *= 1 - kSlack;
  bound.footprint = worst_stage(forms, view);
  return bound;
}

}  // namespace polyphony
