// A scenario: the whole input of a prediction, a search or a run. It consists of model, cluster,
// data, layout or search space, goal and training.
//
// A scenario is one JSON file (`//` comments allowed). The reader
// (shared/scenario_io/scenario_json.h) rejects unknown keys, numbers without units and everything
// that validate() rejects; its errors name the JSON pointer of the value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/data/data.h"
#include "shared/error.h"
#include "shared/fp8_scaling.h"
#include "shared/goal/goal.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/measured_layers.h"
#include "shared/model/layout.h"
#include "shared/model/model.h"
#include "shared/planner/planner_costs.h"
#include "shared/weights/module_weights.h"

namespace polyphony {

// How the learning rate decreases after the warm-up (shared/scenario/learning_rate.h).
enum class RateDecay : std::uint8_t { constant, linear, cosine, wsd };
constexpr auto names(RateDecay) {
  return names_of<RateDecay>("constant", "linear", "cosine", "wsd");
}

struct Training {
  NumberFormat precision = NumberFormat::fp32;  // bf16: fp32 master weights and gradients
  Fp8Scaling fp8 = Fp8Scaling::off;             // of the blocks' GEMMs with weights
  double learning_rate = 1e-3;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip_norm = 1.0;  // global gradient norm; 0: no clipping
  int warmup_steps = 0;
  RateDecay decay = RateDecay::constant;
  double min_learning_rate = 0;        // after the decay
  int decay_steps = 0;                 // step at which the decay ends; 0: steps
  int wsd_decay_steps = 0;             // wsd: of them the last, which decay; 0: a tenth
  std::vector<double> rate_factors{};  // of the learning rate, by ModuleId; empty: all 1
  int steps = 10;
  std::uint64_t seed = 1;  // initial weights
  std::string software;    // name of the software stack it will run on; empty: not stated
  bool operator==(const Training&) const = default;
};

// The choices of a sweep for one module: the values that it combines. An empty list means, as each
// field states, either all values that the model and the cluster allow (shared/search/space.h says
// which), or one default value. Keys: shared/form/search_fields.h.
struct ModuleSearch {
  std::vector<int> tp, cp, pp, vpp, dp, ep;  // empty: all
  std::vector<int> expert_tp;                // 0: tp; empty: all
  std::vector<int> ranks;                    // number of ranks that the module owns; empty: all
  std::vector<bool> sp;                      // empty: all
  std::vector<int> tp_pieces;                // empty: 1
  std::vector<Recompute> recompute;          // empty: all
  std::vector<Shard> shard;                  // empty: all
  std::vector<int> shard_ranks;              // 0: all dp·cp ranks; empty: 0
  std::vector<TokenAssignment> tokens;       // empty: zigzag, or balanced if the mask is not causal
  std::vector<ContextAttention> cp_attention;  // empty: all, one by one or the best of each grid
  std::vector<Spread> spread;                  // empty: samples
  bool operator==(const ModuleSearch&) const = default;
};
// Share of a device's memory that a search leaves free: the allocator's fragmentation is not
// modeled, nor are libraries of other frameworks (shared/graph/library_memory.h). 5 % is an
// assumption.
constexpr double kMemoryMargin = 0.05;

// The layouts that a sweep combines: choices for the whole layout and for each module.
struct Search {
  std::vector<Placement> placement;              // empty: all
  std::vector<ModuleSearch> modules;             // by ModuleId
  std::vector<ScheduleKind> schedule;            // empty: all
  std::vector<int> microbatch;                   // samples per microbatch and lane; empty: all
  std::vector<int> encoder_microbatches = {};    // colocated encoders; as in a Layout; empty: all
  std::vector<EncoderOrder> encoder_order = {};  // empty: in_turn
  std::vector<Bridge> bridge = {};               // empty: sharded
  double memory_margin = kMemoryMargin;
  bool operator==(const Search&) const = default;
};

struct Scenario {
  std::string file;                // path as given, for messages
  std::string about;               // description, arithmetic and source; may be empty
  std::vector<std::string> notes;  // differences between modules and the published models that
                                   // they represent; answers repeat them
  Model model;
  std::vector<ModuleWeights> weights;  // by ModuleId; not part of a Program
  MeasuredModules layer_times;         // measured times of modules; they replace the profile's
  Cluster cluster;
  Data data;
  Training training;
  std::optional<Layout> layout;
  PlannerCosts planner_costs;  // stated next to the layout
  std::optional<Search> search;
  Goal goal;

  double memory_margin() const { return search ? search->memory_margin : kMemoryMargin; }
  // What a searched layout may take of a device's memory; zero: not known, no limit.
  Bytes memory_limit() const {
    const auto whole = static_cast<double>(cluster.device.memory.value);
    return Bytes(static_cast<std::int64_t>(whole * (1 - memory_margin())));
  }
};

}  // namespace polyphony
