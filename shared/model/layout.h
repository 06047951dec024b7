// Which ranks hold which part of which module.
//   A module's grid owns `ranks` consecutive ranks from `first_rank`; tp varies fastest, then cp,
//   dp, pp:
//     rank = first_rank + t + tp·(c + cp·(d + dp·p)),   dp = ranks / (tp·cp·pp)
//   homogeneous    one pipeline over the concatenated layers of all modules; every module has the
//                  language module's grid and the encoder's blocks sit in the first stage(s)
//   colocated      encoder and language grids over the same ranks, shapes may differ
//   non-colocated  disjoint ranks that tile the world
//   mixed          some modules share their ranks, others are disjoint
// A projector always shares its source's grid and runs on its last stage.
// Virtual stages: with vpp > 1 a rank at pipeline index p holds stages p, p + pp, p + 2 pp, …, or
// those that its schedule places there (Schedule::place).
// Experts: the tp·cp·dp ranks of a stage are also expert_tp · ep · (replicas of the experts);
// expert_tp is tp, or 1 with sequence parallelism. ep ranks are neighbours in that order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/ids.h"
#include "shared/schedule/schedule.h"
#include "shared/units.h"

namespace polyphony {

struct Model;

enum class Placement : std::uint8_t { homogeneous, colocated, non_colocated, mixed };
constexpr Placement last_of(Placement) { return Placement::mixed; }
enum class Shard : std::uint8_t { none, optimizer, gradients, full };
constexpr Shard last_of(Shard) { return Shard::full; }
// selective: the attention between q, k, v and its output; full: all of a block but its input.
enum class Recompute : std::uint8_t { none, selective, full };
constexpr Recompute last_of(Recompute) { return Recompute::full; }
// How the tokens of a sequence module's work are dealt to its context-parallel ranks: equal runs;
// 2·cp equal runs, the first and the last to the first rank and so on; blocks of tokens, so that
// attention and linear work together are even; blocks by chance, as many to each.
enum class TokenAssignment : std::uint8_t { contiguous, zigzag, balanced, random };
constexpr TokenAssignment last_of(TokenAssignment) { return TokenAssignment::random; }
// How context-parallel ranks attend: keys and values of all are gathered; heads are exchanged for rows, so
// that each attends for some heads to whole sequences (Ulysses); keys and values are passed round, and
// what each block of them gives is merged (ring).
enum class ContextAttention : std::uint8_t { all_gather, ulysses, ring };
constexpr ContextAttention last_of(ContextAttention) { return ContextAttention::ring; }
// What an encoder's ranks divide among them: samples with their images, or images one by one.
enum class Spread : std::uint8_t { samples, images };
constexpr Spread last_of(Spread) { return Spread::images; }
// What encoders on the language module's ranks run when.
//   in_turn      per encoder work item its forward, the language module's order of the microbatches that
//                it feeds, its backward: the pipeline runs empty between them
//   phases       all forwards, the language module's order, all backwards
//   interleaved  encoder stages are the first virtual stages of one pipeline of both: schedule
//                interleaved, in groups of pp microbatches
enum class EncoderOrder : std::uint8_t { in_turn, phases, interleaved };
constexpr EncoderOrder last_of(EncoderOrder) { return EncoderOrder::interleaved; }
// Rows between grids: from every tensor-parallel rank straight to where they are wanted; or from
// the first tensor-parallel rank to the first, which passes them on to the others. Under sequence
// parallelism every rank has rows of its own: each sends them to the first of the others, which
// collects all and gives each its part.
enum class Bridge : std::uint8_t { sharded, leader };
constexpr Bridge last_of(Bridge) { return Bridge::leader; }

// What splits layers into stages where `blocks` do not: times forward and backward, messages and
// memory; or forward times alone, as if every layer were trained.
enum class Balance : std::uint8_t { aware, unaware };
constexpr Balance last_of(Balance) { return Balance::unaware; }

// Who makes a step's works and orders: the layout's own assignment and schedule, or a planner
// (shared/planner/) for every batch anew. entrain deals samples to works; dip cuts encoders' microbatches
// into sub-microbatches and searches the order of all actions.
enum class Planning : std::uint8_t { none, entrain, dip };
constexpr Planning last_of(Planning) { return Planning::dip; }
// Seconds, forward and backward, of a work on one rank of its module's pipeline, all stages together:
// square·Σx² + linear·Σx + constant over the tokens x of its items (encoders) or samples (language).
struct ItemCost {
  double square = 0, linear = 0, constant = 0;
  bool operator==(const ItemCost&) const = default;
};

// Of a work: square · pairs that attend + linear · tokens + constant; nothing of a work without tokens.
struct WorkCurve {
  double square = 0, linear = 0, constant = 0;
  bool operator==(const WorkCurve&) const = default;
};
// What a work costs each rank of a stage: seconds of its forward, of its backward (of the input, of the
// weights) and of its message to the next stage; bytes that it keeps in between, and from the first part of
// a backward to the second; of those kept in between, bytes that go to the host and back, and the seconds of
// either copy.
struct StageCurves {
  WorkCurve forward, input, weight, message, kept, held, moved{}, copy{};
  bool operator==(const StageCurves&) const = default;
};
// By what planner dip orders the actions of a branch (shared/step/searched_step.h).
struct StageCosts {
  struct Way {  // what an action may recompute
    Recipe recipe = Recipe::none;
    std::vector<StageCurves> stages;
    bool operator==(const Way&) const = default;
  };
  std::vector<Way> ways;     // the least recomputation first
  std::vector<double> room;  // bytes for what is kept, by rank along the pipeline; empty: no limit
  bool operator==(const StageCosts&) const = default;
};

struct ModuleLayout {
  int tp = 1;
  int cp = 1;
  int pp = 1;
  int vpp = 1;
  int ep = 1;
  bool sp = false;  // sequence parallelism over the tp ranks
  // Rows of a matrix product of the tp ranks, and of the collective before or after it, in so many pieces: the
  // collective of one beside the product of the next (shared/work/row_pieces.h).
  int tp_pieces = 1;
  Shard shard = Shard::none;
  int shard_ranks = 0;  // HSDP: ranks a shard group spans; 0: the whole dp group
  Recompute recompute = Recompute::none;
  std::vector<int> recompute_blocks;  // first and last+1 of the blocks it holds for; empty: all
  // Tapes wait for their backwards in the host's memory, but for those wanted soon (shared/lower/lower.h).
  bool offload_activations = false;
  int expert_tp = 0;  // 0: tp
  TokenAssignment tokens = TokenAssignment::contiguous;
  ContextAttention cp_attention = ContextAttention::all_gather;
  // Key/value heads of a tensor-parallel rank that all-gather brings at a time, the next of them beside the
  // attention of those before; what was brought is not kept, but brought again in the backward, which
  // scatters gradients likewise. 0: all at once, and kept.
  int cp_heads = 0;
  // Keys of a query that attention takes in one piece, its pieces joined by their log-sum-exps: long
  // rows leave no tail behind the others (shared/cost/attention_tail.h). 0: all.
  int row_split = 0;
  Spread spread = Spread::samples;
  int first_rank = 0;
  int ranks = 1;
  // Transformer blocks per (virtual) stage; empty: balanced by cost. Homogeneous: the language
  // module's list counts the blocks of the whole chain, encoders first.
  std::vector<int> blocks;
  int ahead = 0;  // an encoder with ranks of its own: forwards more than its schedule's warm-up
  std::optional<ItemCost> item_cost;  // what a planner weighs by; absent: as the profile has it
  int sub_microbatch = 1;             // planner dip: items that a work has, if there are so many
  std::optional<StageCosts> stage_costs;  // planner dip; absent: as the profile has them
  bool operator==(const ModuleLayout&) const = default;

  int dp() const { return ranks / (tp * cp * pp); }
  bool gathers_keys() const { return cp > 1 && cp_attention == ContextAttention::all_gather; }
  // Of a module with so many key/value heads: some of a rank's at a time.
  bool gathers_by_heads(int kv_heads) const {
    return gathers_keys() && cp_heads > 0 && cp_heads < kv_heads / tp;
  }
  int experts_tp() const { return expert_tp == 0 ? tp : expert_tp; }
  Rank rank_at(int t, int c, int d, int p) const {
    return Rank(static_cast<std::size_t>(first_rank + t + tp * (c + cp * (d + dp() * p))));
  }
};

struct Layout {
  Placement placement = Placement::homogeneous;
  std::vector<ModuleLayout> modules;  // by ModuleId; projectors carry their source's grid
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int microbatches = 1;  // per data-parallel lane of the language module and step
  // Encoder work items a step; 0: as many as microbatches, but one for encoders that run in turn with a
  // language pipeline on their ranks. Several of a microbatch (sub-microbatches): planner dip.
  int encoder_microbatches = 0;
  EncoderOrder encoder_order = EncoderOrder::in_turn;
  Bridge bridge = Bridge::sharded;
  Balance balance = Balance::aware;
  Planning planner = Planning::none;
  int placements = 1000;  // planner dip: of a whole step, that its search tries
  // The actions of each rank along the language module's pipeline, in place of its schedule's; a stage
  // is on the rank that runs it, and branches with ranks of their own follow the order of the stage
  // that they feed or that feeds them. Colocated: of the microbatches that one encoder work item feeds.
  std::vector<Actions> actions = {};
  bool operator==(const Layout&) const = default;
};

// What a layer costs the stage that holds it, of one work item on one rank (shared/cost/layer_costs.h).
struct LayerCost {
  Seconds forward{}, backward{};
  Bytes sent{};  // to the next stage, where the layer is the last
  Seconds total() const { return forward + backward; }
  bool operator==(const LayerCost&) const = default;
};
// By ModuleId and position in the module's stack.
using LayerCosts = std::vector<std::vector<LayerCost>>;

int world_size(const Layout& layout);
bool same_ranks(const ModuleLayout& a, const ModuleLayout& b);
const char* name(Placement placement);
const char* name(Shard shard);
const char* name(Recompute recompute);
// What a forward's recipe says; empty: what the layout does.
std::optional<Recompute> recompute_of(Recipe recipe);
bool offloads(const ModuleLayout& layout, Recipe recipe);
const char* name(TokenAssignment tokens);
const char* name(ContextAttention attention);
const char* name(Spread spread);
const char* name(EncoderOrder order);
const char* name(Bridge bridge);
const char* name(Balance balance);
const char* name(Planning planner);
// Of the schedule, or that the layout has actions of its own.
const char* schedule_name(const Layout& layout);
// "TP2 PP2 DP4" of one module's grid.
std::string describe(const ModuleLayout& layout);
// One line: "non-colocated  vision TP1 PP1 DP2 |  language TP1 PP2 DP1  1f1b x8".
std::string describe(const Model& model, const Layout& layout);
// The same in few words, for tables: "apart  64:TP4s PP2 Z1 | TP8s PP7 Z1 1f1b x128". s: sequence
// parallelism; V: virtual stages; Z1, Z2, Z3: shard optimizer, gradients, full (ZeRO's stages), /8:
// over 8 ranks; rc, sel: recompute full, selective; off: activations
// offloaded; *: blocks of its own; 64: ranks of its own; x128/4: microbatches,
// encoder work items, ph, il: encoder order phases, interleaved; +4: ahead.
std::string brief(const Model& model, const Layout& layout);

}  // namespace polyphony
