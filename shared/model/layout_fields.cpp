#include "shared/model/layout_fields.h"

#include <iterator>
#include <type_traits>

#include "shared/member_count.h"
#include "shared/model/limits.h"
#include "shared/model/model.h"

namespace polyphony {
namespace {

template <class Whole>
bool always(const Whole&) {
  return true;
}
bool in_context(const Module&, const ModuleLayout& grid) { return grid.cp > 1; }
bool with_experts(const Module& module, const ModuleLayout&) { return module.experts > 0; }

constexpr GridField kGrid[] = {
    {.key = "tp",
     .member = &ModuleLayout::tp,
     .least = 1,
     .most = kMostRanks,
     .about = "number of tensor-parallel ranks; 1 when absent",
     .written = always,
     .shared = true,
     .column = 3,
     .simple = 3,
     .words = "TP",
     .spoken = 2},
    {.key = "cp",
     .member = &ModuleLayout::cp,
     .least = 1,
     .most = kMostRanks,
     .about = "number of context-parallel ranks; 1 when absent",
     .shared = true,
     .column = 4,
     .simple = 4,
     .words = "CP",
     .spoken = 5},
    {.key = "pp",
     .member = &ModuleLayout::pp,
     .least = 1,
     .most = kMostRanks,
     .about = "number of pipeline ranks; 1 when absent",
     .written = always,
     .shared = true,
     .column = 5,
     .simple = 1,
     .words = "PP",
     .spoken = 12},
    {.key = "vpp",
     .member = &ModuleLayout::vpp,
     .least = 1,
     .most = kMostRanks,
     .about = "number of virtual pipeline stages (model chunks) per rank; 1 when absent",
     .shared = true,
     .column = 6,
     .simple = 2,
     .words = "VPP",
     .spoken = 13},
    {.key = "ep",
     .member = &ModuleLayout::ep,
     .least = 1,
     .most = kMostRanks,
     .about = "number of expert-parallel ranks; 1 when absent",
     .language = true,
     .column = 7,
     .simple = 5,
     .words = "EP",
     .spoken = 10,
     .used = with_experts},
    {.key = "sp",
     .member = &ModuleLayout::sp,
     .about = "true: sequence parallelism over the tensor-parallel ranks; false when absent",
     .shared = true,
     .column = 9,
     .simple = 7,
     .words = "sequence parallelism",
     .spoken = 3},
    {.key = "tp_pieces",
     .member = &ModuleLayout::tp_pieces,
     .least = 1,
     .most = kMostRanks,
     .about =
         "number of chunks into which the rows of a tensor-parallel GEMM are cut, so that the "
         "collective of one chunk overlaps with the GEMM of the next; 1 (no overlap) when absent",
     .shared = true,
     .column = 10,
     .simple = 8,
     .words = "TP chunks",
     .spoken = 4},
    {.key = "shard",
     .member = &ModuleLayout::shard,
     .about =
         "what is sharded over the data-parallel ranks: nothing, optimizer state (ZeRO-1), "
         "gradients as well (ZeRO-2), or parameters as well (full: ZeRO-3, FSDP); none when absent",
     .written = always,
     .own = 4,
     .shared = true,
     .column = 11,
     .simple = 10,
     .words = "shard",
     .spoken = 16},
    {.key = "shard_ranks",
     .member = &ModuleLayout::shard_ranks,
     .least = 0,
     .most = kMostRanks,
     .about = "number of ranks of a shard group (HSDP); 0: all dp·cp ranks; 0 when absent",
     .shared = true,
     .column = 12,
     .simple = 11},
    {.key = "recompute",
     .member = &ModuleLayout::recompute,
     .about =
         "activations that the backward pass recomputes: none, selective (attention only), or full "
         "(all of a block but its input); none when absent",
     .written = always,
     .own = 1,
     .column = 13,
     .simple = 9},
    {.key = "recompute_blocks",
     .member = &ModuleLayout::recompute_blocks,
     .least = 0,
     .most = kMostLayers,
     .shortest = 2,
     .longest = 2,
     .about =
         "[first, last + 1] of the blocks that \"recompute\" applies to; all blocks when absent",
     .own = 2,
     .with = "recompute",
     .column = 14,
     .simple = 19},
    {.key = "offload_activations",
     .member = &ModuleLayout::offload_activations,
     .about = "true: saved activations are copied to the host's memory after a forward pass and "
              "back one "
              "action before the backward pass, if at least two actions lie in between; false when "
              "absent",
     .own = 3,
     .column = 0},
    {.key = "expert_tp",
     .member = &ModuleLayout::expert_tp,
     .least = 0,
     .most = kMostRanks,
     .about = "number of tensor-parallel ranks of one expert: tp, or 1; 0: tp; 0 when absent",
     .language = true,
     .column = 8,
     .simple = 6,
     .words = "experts TP",
     .spoken = 11,
     .used = with_experts,
     .effective = [](const ModuleLayout& grid) { return grid.experts_tp(); }},
    {.key = "tokens",
     .member = &ModuleLayout::tokens,
     .about = "how the tokens of a sequence are assigned to the context-parallel ranks: contiguous "
              "(equal runs), zigzag (2 cp equal runs, rank i has run i from the start and run i "
              "from the "
              "end), balanced (blocks, so that attention and linear layers are even), or random "
              "(blocks, "
              "as many per rank); contiguous when absent",
     .language = true,
     .shared = true,
     .column = 15,
     .simple = 12,
     .words = "tokens",
     .spoken = 6,
     .used = in_context},
    {.key = "cp_attention",
     .member = &ModuleLayout::cp_attention,
     .about =
         "how context-parallel ranks compute attention: all-gather (keys and values of all ranks "
         "are gathered), ulysses (heads are exchanged for tokens by all-to-all), or ring (keys and "
         "values are passed around); all-gather when absent",
     .language = true,
     .column = 16,
     .simple = 13,
     .words = "attention over CP",
     .spoken = 7,
     .used = in_context},
    {.key = "cp_heads",
     .member = &ModuleLayout::cp_heads,
     .least = 0,
     .most = kMostRanks,
     .about =
         "language module with cp_attention all-gather: number of a rank's key/value heads that "
         "are "
         "gathered at a time, overlapped with the attention of the heads before; 0: all at once; 0 "
         "when absent",
     .language = true,
     .column = 17,
     .simple = 14,
     .words = "heads per gather",
     .spoken = 8},
    {.key = "row_split",
     .member = &ModuleLayout::row_split,
     .least = 0,
     .most = std::int64_t{1} << 30,
     .about =
         "language module: largest number of keys that an attention kernel processes in one piece, "
         "whose results are then combined (split-KV); 0: all keys; 0 when absent",
     .language = true,
     .column = 18,
     .simple = 15,
     .words = "row split",
     .spoken = 9},
    {.key = "spread",
     .member = &ModuleLayout::spread,
     .about = "encoder: what its ranks get: samples (with all their images, which are divided over "
              "context-parallel ranks), single images, or copied (samples, and every "
              "context-parallel rank encodes all their images); samples when absent",
     .shared = true,
     .column = 19,
     .simple = 16,
     .words = "spread",
     .spoken = 14},
    {.key = "first_rank",  // with the next one under the key "ranks"
     .member = &ModuleLayout::first_rank,
     .shared = true,
     .column = 1,
     .simple = 17},
    {.key = "ranks",
     .member = &ModuleLayout::ranks,
     .shared = true,
     .column = 2,
     .simple = 18,
     .words = "ranks",
     .spoken = 1},
    {.key = "blocks",
     .member = &ModuleLayout::blocks,
     .least = 0,
     .most = kMostLayers,
     .shortest = 1,
     .longest = kMostLayers,
     .about =
         "number of transformer blocks of each (virtual) stage; in a homogeneous layout, of the "
         "whole chain, encoders first; the first and the last may have 0 (the embedding, the head "
         "alone); balanced by cost when absent",
     .column = 21,
     .simple = 20},
    {.key = "ahead",
     .member = &ModuleLayout::ahead,
     .least = 0,
     .most = kMostSamples,
     .about =
         "encoder with ranks of its own: number of forward passes that it runs in addition to its "
         "schedule's warm-up; 0 when absent",
     .shared = true,
     .column = 20,
     .simple = 21,
     .words = "ahead",
     .spoken = 15},
    {.key = "sub_microbatch",
     .member = &ModuleLayout::sub_microbatch,
     .least = 1,
     .most = kMostSamples,
     .about =
         "planner dip: number of items (images or clips) of an encoder's sub-microbatch, if the "
         "microbatch has as many; 1 when absent",
     .column = 0},
};
static_assert(member_count<ModuleLayout>() == std::size(kGrid), "a row for each member");

constexpr LayoutField kWhole[] = {
    {.key = "placement",
     .member = &Layout::placement,
     .about =
         "how the modules are placed on the ranks: homogeneous (one pipeline of all modules, one "
         "grid), colocated (all ranks shared, a grid per module), non-colocated (disjoint ranks), "
         "or mixed (some modules share ranks, others are disjoint)",
     .required = true,
     .written = always,
     .column = 0,
     .simple = 1,
     .words = "placement"},
    {.key = "schedule",
     .member = &Layout::schedule,
     .about = "pipeline schedule; 1f1b when absent",
     .written = always,
     .column = 0,
     .simple = 2},
    {.key = "microbatches",
     .member = &Layout::microbatches,
     .least = 1,
     .most = kMostSamples,
     .about =
         "number of microbatches per step and data-parallel replica of the language module; 1 when "
         "absent",
     .written = always,
     .column = 1,
     .simple = 6,
     .words = "microbatches"},
    {.key = "encoder_microbatches",
     .member = &Layout::encoder_microbatches,
     .least = 0,
     .most = kMostSamples,
     .about =
         "number of encoder microbatches per step; 0: as many as microbatches, but one for "
         "encoders "
         "that share the language module's ranks and run in turn with its pipeline; with planner "
         "dip, several per microbatch; 0 when absent",
     .column = 2,
     .simple = 5,
     .words = "encoder microbatches",
     .zero = "by default"},
    {.key = "encoder_order",
     .member = &Layout::encoder_order,
     .about =
         "when encoders that share the language module's ranks run: in turn with its pipeline, in "
         "phases (all forward passes before it, all backward passes after it), or interleaved (as "
         "the first virtual stages of one pipeline); in turn when absent",
     .column = 3,
     .simple = 4,
     .words = "encoder order"},
    {.key = "bridge",
     .member = &Layout::bridge,
     .about =
         "how rows are transferred between modules with grids of their own: sharded (directly "
         "between the ranks that hold and need them), or leader (through the first tensor-parallel "
         "rank of either side); sharded when absent",
     .column = 4,
     .simple = 3,
     .words = "bridge"},
    {.key = "balance",
     .member = &Layout::balance,
     .about =
         "how layers are split into stages where \"blocks\" does not name the split: aware (by the "
         "times of forward and backward passes, messages and memory), or unaware (by forward times "
         "alone, as if no module were frozen); aware when absent",
     .column = 0,
     .words = "balance"},
    {.key = "planner",
     .member = &Layout::planner,
     .about =
         "planner that runs for every step: entrain assigns samples to microbatches so that the "
         "load of encoders and of the language module is even; dip cuts the encoders' microbatches "
         "into sub-microbatches and searches for the best order of all actions; none assigns "
         "samples in the order of the batch; none when absent",
     .column = 0,
     .words = "planner"},
    {.key = "placements",
     .member = &Layout::placements,
     .least = 0,
     .most = kMostSamples,
     .about = "planner dip: number of action orders that the search tries per step; 0: no search, "
              "encoders fill the bubbles of the language module's schedule; 1000 when absent",
     .written = [](const Layout& layout) { return layout.planner == Planning::dip; },
     .column = 0},
    {.key = "deferral",
     .member = &Layout::deferral,
     .about =
         "planner entrain: true: the language module may process a sample one microbatch later "
         "than the encoders, so that its work is even, too; false: only the encoders' work is "
         "balanced, and no encoder output waits; true when absent",
     .column = 0},
};
// Members without a row: modules and actions.
static_assert(member_count<Layout>() == std::size(kWhole) + 2, "a row for each member");

}  // namespace

template <class Whole, class... Choices>
Form FieldOf<Whole, Choices...>::form() const {
  return std::visit(
      [&]<class Value>(Value Whole::*) {
        if constexpr (std::is_same_v<Value, int>)
          return integer_form(least, most);
        else if constexpr (std::is_same_v<Value, bool>)
          return boolean_form();
        else if constexpr (std::is_same_v<Value, std::vector<int>>)
          return list_form(integer_form(least, most), shortest, longest);
        else if constexpr (std::is_same_v<Value, ScheduleKind>)
          return choice_form(enum_names(kLastSchedule));
        else
          return choice_form(enum_names<Value>());
      },
      member);
}

template <class Whole, class... Choices>
void FieldOf<Whole, Choices...>::read(const JsonValue& value, Whole& whole) const {
  visit(whole, [&]<class Value>(Value& out) {
    if constexpr (!std::is_enum_v<Value>) {
      value.read(key, out);
    } else if (value.has(key)) {
      if constexpr (std::is_same_v<Value, ScheduleKind>)
        out = enum_named(value.at(key).text(), kLastSchedule);
      else
        out = enum_named<Value>(value.at(key).text());
    }
  });
}

template struct FieldOf<ModuleLayout, Shard, Recompute, TokenAssignment, ContextAttention, Spread>;
template struct FieldOf<Layout, Placement, ScheduleKind, EncoderOrder, Bridge, Balance, Planning>;

std::span<const GridField> grid_fields() { return kGrid; }
std::span<const LayoutField> layout_fields() { return kWhole; }

}  // namespace polyphony
