// Describes which ranks hold which part of which module: the grid of every module, how the modules
// share ranks, the pipeline schedule, and the number of microbatches.
//   A module's grid owns `ranks` consecutive ranks from `first_rank`; tp varies fastest, then cp,
//   dp, pp:
//     rank = first_rank + t + tp·(c + cp·(d + dp·p)),   dp = ranks / (tp·cp·pp)
//
// Placements:
//   homogeneous    one pipeline over the concatenated layers of all modules; every module has the
//                  language module's grid and the encoder's blocks are in the first stage(s)
//   colocated      encoder and language grids over the same ranks; their shapes may differ
//   non-colocated  disjoint grids that together cover all ranks
//   mixed          some modules share their ranks, others are disjoint
// A projector always shares its source's grid and runs on its last stage.
//
// Virtual stages: with vpp > 1 a rank at pipeline index p holds stages p, p + pp, p + 2 pp, …, or
// the stages that its schedule places there (Schedule::place).
// Experts: the tp·cp·dp ranks of a stage also factor into expert_tp · ep · (expert replicas);
// expert_tp is tp, or 1 with sequence parallelism. ep ranks are neighbors in that order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/ids.h"
#include "shared/schedule/schedule.h"
#include "shared/units.h"

namespace polyphony {

struct Model;

enum class Placement : std::uint8_t { homogeneous, colocated, non_colocated, mixed };
constexpr auto names(Placement) {
  return names_of<Placement>("homogeneous", "colocated", "non-colocated", "mixed");
}
enum class Shard : std::uint8_t { none, optimizer, gradients, full };
constexpr auto names(Shard) { return names_of<Shard>("none", "optimizer", "gradients", "full"); }
// selective: recomputes attention from saved q, k and v; full: recomputes all of a block from its
// saved input.
enum class Recompute : std::uint8_t { none, selective, full };
constexpr auto names(Recompute) { return names_of<Recompute>("none", "selective", "full"); }
// How the tokens of a sequence module's microbatch are assigned to its context-parallel ranks:
//   contiguous  cp equal runs of tokens, one per rank
//   zigzag      2·cp equal runs; rank 0 gets the first and the last, rank 1 the second and the
//               second last, and so on
//   balanced    blocks of tokens, chosen so that every rank has about equal attention and linear
//               work
//   random      random blocks of tokens, the same number for each rank
enum class TokenAssignment : std::uint8_t { contiguous, zigzag, balanced, random };
constexpr auto names(TokenAssignment) {
  return names_of<TokenAssignment>("contiguous", "zigzag", "balanced", "random");
}
// How context-parallel ranks compute attention:
//   all_gather  every rank gathers the keys and values of all ranks
//   ulysses     ranks exchange heads for rows, so that each attends over whole sequences for some
//               of the heads (DeepSpeed-Ulysses)
//   ring        keys and values are passed around a ring, and the partial results are merged
enum class ContextAttention : std::uint8_t { all_gather, ulysses, ring };
constexpr auto names(ContextAttention) {
  return names_of<ContextAttention>("all-gather", "ulysses", "ring");
}
// How an encoder's data is partitioned over its ranks.
//   samples  lanes get whole samples; the images of a lane are divided over its context-parallel
//            ranks
//   images   single images are divided over both
//   copied   lanes get whole samples; each context-parallel rank encodes all images of its lane and
//            keeps the rows of its tokens. So do frameworks that divide the sequence after the
//            merge of text and images (Megatron-LM's models with encoders)
enum class Spread : std::uint8_t { samples, images, copied };
constexpr auto names(Spread) { return names_of<Spread>("samples", "images", "copied"); }
// When encoders that share the language module's ranks run.
//   in_turn      for each encoder microbatch: its forward, then the language module's schedule for
//                the microbatches that it feeds, then its backward. The pipeline drains in between
//   phases       all encoder forwards, then the language module's schedule, then all encoder
//                backwards
//   interleaved  encoder stages are the first virtual stages of one pipeline with the language
//                module: schedule interleaved, in groups of pp microbatches
enum class EncoderOrder : std::uint8_t { in_turn, phases, interleaved };
constexpr auto names(EncoderOrder) {
  return names_of<EncoderOrder>("in-turn", "phases", "interleaved");
}
// How rows move between the grids of two modules.
//   sharded  every tensor-parallel rank sends its rows straight to the ranks that need them
//   leader   the first tensor-parallel rank sends to the first one of the receiving grid, which
//            broadcasts to the others. With sequence parallelism every rank holds different rows:
//            each sends its rows to the receiving leader, which collects and scatters them
enum class Bridge : std::uint8_t { sharded, leader };
constexpr auto names(Bridge) { return names_of<Bridge>("sharded", "leader"); }

// How layers are split into stages where `blocks` is empty. aware: by forward and backward times,
// messages and memory. unaware: by forward times alone, so that frozen layers count as if they were
// trained.
enum class Balance : std::uint8_t { aware, unaware };
constexpr auto names(Balance) { return names_of<Balance>("aware", "unaware"); }

// Whether a per-batch planner (shared/planner/) assigns samples and orders actions.
//   none     the layout's own assignment and schedule
//   entrain  assigns samples to microbatches for every batch
//   dip      splits encoder microbatches into sub-microbatches and searches the order of all
//            actions
enum class Planning : std::uint8_t { none, entrain, dip };
constexpr auto names(Planning) { return names_of<Planning>("none", "entrain", "dip"); }

// Each member of ModuleLayout and of Layout has a row in shared/model/layout_fields.cpp.
struct ModuleLayout {
  int tp = 1;
  int cp = 1;
  int pp = 1;
  int vpp = 1;
  int ep = 1;
  bool sp = false;  // sequence parallelism over the tp ranks
  // Number of chunks that the rows of a tensor-parallel GEMM, and of the collective before or after
  // it, are split into, so that the collective of one chunk overlaps with the GEMM of the next
  // (shared/work/row_pieces.h).
  int tp_pieces = 1;
  Shard shard = Shard::none;
  int shard_ranks = 0;  // HSDP: number of ranks in a shard group; 0: all dp·cp ranks
  Recompute recompute = Recompute::none;
  std::vector<int> recompute_blocks;  // {first, last + 1} of the blocks that recompute; empty: all
  // Saved activations are offloaded to host memory between forward and backward, except those
  // needed again soon (shared/lower/lower.h).
  bool offload_activations = false;
  int expert_tp = 0;  // 0: tp
  TokenAssignment tokens = TokenAssignment::contiguous;
  ContextAttention cp_attention = ContextAttention::all_gather;
  // Number of key/value heads (of a tensor-parallel rank) gathered at a time; the next gather
  // overlaps with the attention of the heads before. Gathered heads are not saved: the backward
  // gathers them again, and reduce-scatters gradients in the same parts. 0: all at once, and saved.
  int cp_heads = 0;
  // Number of keys per query in one attention call; the partial results are joined by their
  // log-sum-exps. Splitting long rows keeps them from running alone at the end of a kernel
  // (shared/cost/attention_tail.h). 0: all keys.
  int row_split = 0;
  Spread spread = Spread::samples;
  int first_rank = 0;
  int ranks = 1;
  // Transformer blocks per (virtual) stage; empty: balanced by cost. Homogeneous: the language
  // module's list counts the blocks of the whole chain, encoders first.
  std::vector<int> blocks;
  int ahead = 0;  // encoder with its own ranks: extra forwards on top of its schedule's warm-up
  int sub_microbatch = 1;  // planner dip: items per sub-microbatch, if there are that many
  bool operator==(const ModuleLayout&) const = default;

  int dp() const { return ranks / (tp * cp * pp); }
  // Returns whether context-parallel ranks encode the same images.
  bool copies_items() const { return spread == Spread::copied && cp > 1; }
  bool gathers_keys() const { return cp > 1 && cp_attention == ContextAttention::all_gather; }
  // Returns true if a rank of a module with `kv_heads` key/value heads gathers only some at a time.
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
  int microbatches = 1;  // per data-parallel replica of the language module and step
  // Encoder microbatches per step; 0: as many as `microbatches`, but 1 for encoders with order
  // in_turn in front of a language pipeline on the same ranks. A multiple of `microbatches`
  // (sub-microbatches) needs planner dip.
  int encoder_microbatches = 0;
  EncoderOrder encoder_order = EncoderOrder::in_turn;
  Bridge bridge = Bridge::sharded;
  Balance balance = Balance::aware;
  Planning planner = Planning::none;
  int placements = 1000;  // planner dip: number of complete schedules that its search tries
  // Planner entrain: whether the language module may process a sample one microbatch later than the
  // encoders, so that its work is even, too.
  bool deferral = true;
  // The actions of each rank of the language module's pipeline, replacing those of its schedule. A
  // stage belongs to the rank that runs its actions. Branches with ranks of their own follow the
  // order of the stage that they feed or that feeds them. With encoder_order in_turn the list
  // covers the microbatches of one encoder microbatch and is repeated for each.
  std::vector<Actions> actions = {};
  bool operator==(const Layout&) const = default;
};

int world_size(const Layout& layout);
bool same_ranks(const ModuleLayout& a, const ModuleLayout& b);
// Returns what a forward with this recipe recomputes; nothing if it follows the layout.
std::optional<Recompute> recompute_of(Recipe recipe);
bool offloads(const ModuleLayout& layout, Recipe recipe);
// Returns the name of the schedule, or "own actions" if the layout lists its actions.
const char* schedule_name(const Layout& layout);
// Returns one module's grid as text: "TP2 PP2 DP4".
std::string describe(const ModuleLayout& layout);
// Returns one line: "non-colocated  vision TP1 PP1 DP2 |  language TP1 PP2 DP1  1f1b x8".
std::string describe(const Model& model, const Layout& layout);
// Returns a short form of the same line for tables:
// "non-colocated  64:TP4s PP2 Z1 | TP8s PP7 Z1 1f1b x128".
//   s               sequence parallelism
//   V               virtual stages
//   Z1, Z2, Z3      shard optimizer, gradients, full (ZeRO's stages); /8: over 8 ranks
//   rc, sel         recompute full, selective
//   off             activations offloaded
//   *               its own list of blocks per stage
//   64:             64 ranks of its own
//   x128/4          128 microbatches, 4 encoder microbatches
//   ph, il          encoder order phases, interleaved
//   +4              4 forwards ahead
std::string brief(const Model& model, const Layout& layout);

}  // namespace polyphony
