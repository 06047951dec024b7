// All that a person writes: model, cluster, data, layout or search space, schedule, training. One
// JSON file (`//` comments allowed). Reading (shared/scenario_io/scenario_json.h) refuses unknown
// keys, numbers without units and everything validate() refuses, by JSON pointer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/data/data.h"
#include "shared/error.h"
#include "shared/goal/goal.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/measured_layers.h"
#include "shared/model/layout.h"
#include "shared/model/model.h"

namespace polyphony {

struct Training {
  NumberFormat precision = NumberFormat::fp32;  // bf16: fp32 master weights and gradients
  double learning_rate = 1e-3;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip_norm = 1.0;  // global norm; 0: no clipping
  int warmup_steps = 0;
  int steps = 10;
  std::uint64_t seed = 1;  // initial weights
  std::string software;    // the stack it will run on, as profiles name theirs; empty: not said
  bool operator==(const Training&) const = default;
};

// Choices to combine in a sweep; an empty list means: all that the model and cluster allow
// (shared/search/space.h says which those are). Keys: shared/form/search_fields.h.
struct ModuleSearch {
  std::vector<int> tp, cp, pp, vpp, dp, ep;
  std::vector<int> expert_tp;  // 0: tp
  std::vector<int> ranks;      // own ranks: how many
  std::vector<bool> sp;
  std::vector<int> tp_pieces;  // empty: 1
  std::vector<Recompute> recompute;
  std::vector<Shard> shard;
  std::vector<int> shard_ranks;  // 0: the whole data-parallel group
  std::vector<TokenAssignment> tokens;
  std::vector<ContextAttention> cp_attention;
  std::vector<Spread> spread;
  bool operator==(const ModuleSearch&) const = default;
};
// Share of a device's memory that a search leaves free: the allocator's fragmentation, NCCL's
// buffers and workspaces of libraries are not modeled. 5 % is an assumption.
constexpr double kMemoryMargin = 0.05;

struct Search {
  std::vector<Placement> placement;
  std::vector<ModuleSearch> modules;  // by ModuleId
  std::vector<ScheduleKind> schedule;
  std::vector<int> microbatch;                 // samples per microbatch and language lane
  std::vector<int> encoder_microbatches = {};  // colocated before a pipeline; as in a layout
  std::vector<EncoderOrder> encoder_order = {};
  std::vector<Bridge> bridge = {};
  double memory_margin = kMemoryMargin;
  bool operator==(const Search&) const = default;
};

struct Scenario {
  std::string file;                // as given, for messages
  std::string about;               // what this is, its arithmetic, its source; may be empty
  std::vector<std::string> notes;  // in what modules differ from the published models they stand
                                   // for; answers repeat them
  Model model;
  MeasuredModules layer_times;  // of its modules; they take the place of a profile's
  Cluster cluster;
  Data data;
  Training training;
  std::optional<Layout> layout;
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
