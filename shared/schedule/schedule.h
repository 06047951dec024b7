// The named pipeline schedules: in which order the ranks of one pipeline run its actions, and which
// stages each rank holds. kSchedules has one row per schedule.
//   p, pp: rank and number of ranks of the pipeline; vpp: virtual stages per rank
//
//   gpipe        all forwards, then all backwards, in the same order of microbatches
//   1f1b         warm-up of as many forwards as there are stages after the rank's, then one
//                forward, one backward, alternating
//   interleaved  1f1b over virtual stages: microbatches run in groups of pp, each group through
//                the rank's virtual stage 0, then 1, …; warm-up 2·(pp − p − 1) + (vpp − 1)·pp
//   zero-bubble  (ZB-H1) 1f1b with backwards split into an input and a weight part; stage s runs
//                the weight part s microbatches later, so that earlier stages receive gradients
//                sooner and weight parts fill the drain phase. As many microbatches in flight as
//                1f1b
//   zb-h2        zero-bubble with a warm-up of 2·(stages after it) and weight parts 2·s
//                microbatches later: no bubble after the warm-up if F = I = W; up to 2·pp − 1
//                microbatches in flight
//   zb-v         two virtual stages per rank, placed down the ranks and up again; as many bytes of
//                saved activations as 1f1b, equal on all ranks
//   dualpipe-v   the same V placement; forwards are paired with backwards of the other direction
//   eager-1f1b   1f1b with a warm-up of 2·(stages after it), so that each message has the time of
//                one forward and one backward to arrive; up to 2·pp − 1 microbatches in flight
//   v-half       two virtual stages per rank, placed as in zb-v; half the saved activations of 1f1b
//                (⌊(pp + 2) / 2⌋ microbatches) at half its bubble, if F = I = W
//   v-min        the same with a third of them (⌊(pp + 4) / 3⌋), at two thirds of the bubble if
//                F = I = W; otherwise its stages wait for each other in every microbatch
//   interleaved-zb  interleaved with split backwards: a warm-up of (pp − p − 1) + (vpp − 1)·pp, and
//                the weight part of rank p runs p backwards later, as in zero-bubble
//
// Sources: Huang et al., arXiv 1811.06965 (gpipe); Narayanan et al., arXiv 2104.04473 §2.2 (1f1b,
// interleaved); Qi et al., arXiv 2401.10241 §3 and §6 (zero-bubble, zb-h2) and arXiv 2405.15362
// (zb-v, and the memory and bubbles of v-half and v-min, whose orders are our own); DualPipe-V:
// DeepSeek-V3, arXiv 2412.19437 §3.2.1, cut in half as in Sea AI Lab's note of 2025; eager: Zhuang
// et al., arXiv 2211.05322; interleaved-zb: ScheduleInterleavedZeroBubble of
// torch/distributed/pipelining/schedules.py (PyTorch 2.11).
#pragma once

#include <iterator>
#include <limits>
#include <string>

#include "shared/schedule/action.h"

namespace polyphony {

enum class ScheduleKind : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble,
  zero_bubble_h2,
  zero_bubble_v,
  dualpipe_v,
  eager_one_f_one_b,
  v_half,
  v_min,
  interleaved_zero_bubble
};

struct Pipeline {
  int ranks = 1;           // pipeline-parallel ranks
  int virtual_stages = 1;  // per rank
  int microbatches = 1;
  int after = 0;  // number of stages of other branches that the last stage feeds
  int stages() const { return ranks * virtual_stages; }
  auto operator<=>(const Pipeline&) const = default;
};

namespace schedules {
// Return the rank that holds a stage.
int round_robin(const Pipeline& pipeline, int stage);
int v_shape(const Pipeline& pipeline, int stage);
// Return why the schedule cannot run on the pipeline, with the nearest legal values; empty if it
// can.
std::string any(const Pipeline& pipeline);
std::string one_stage_a_rank(const Pipeline& pipeline);
std::string groups_of_ranks(const Pipeline& pipeline);
std::string two_stages_a_rank(const Pipeline& pipeline);
std::string two_stages_and_twice_the_ranks(const Pipeline& pipeline);
// Return the actions of pipeline rank `rank`, for branch 0.
Actions gpipe(const Pipeline& pipeline, int rank);
Actions one_f_one_b(const Pipeline& pipeline, int rank);
Actions interleaved(const Pipeline& pipeline, int rank);
Actions zero_bubble(const Pipeline& pipeline, int rank);
Actions zero_bubble_h2(const Pipeline& pipeline, int rank);
Actions zero_bubble_v(const Pipeline& pipeline, int rank);
Actions dualpipe_v(const Pipeline& pipeline, int rank);
Actions eager_one_f_one_b(const Pipeline& pipeline, int rank);
Actions v_half(const Pipeline& pipeline, int rank);
Actions v_min(const Pipeline& pipeline, int rank);
Actions interleaved_zero_bubble(const Pipeline& pipeline, int rank);
}  // namespace schedules

// A row of the table: what a schedule does, and what it needs of a layout. Code outside this folder
// asks the row, never which schedule it is.
struct Schedule {
  ScheduleKind kind;
  const char* name;
  std::string (*refusal)(const Pipeline&);
  Actions (*order)(const Pipeline&, int rank);
  int (*place)(const Pipeline&, int stage) = schedules::round_robin;
  // Schedule of the branches that the pipeline feeds.
  ScheduleKind following = ScheduleKind::one_f_one_b;

  // Needs. They restate `refusal` as numbers, so that a search can meet them without trial.
  // Virtual stages per rank that it accepts. A minimum above 1 also needs more than one rank.
  int min_virtual_stages = 1, max_virtual_stages = 1;
  // A step needs at least this many microbatches per pipeline rank; 0: no minimum.
  int min_microbatches_per_rank = 0;
  // Microbatches run in groups of pp: their number must be a multiple of pp.
  bool groups_of_ranks = false;

  // A search that names no schedules lists it. Others are tried by climbs (shared/search/space.h).
  bool listed = true;

  // Properties.
  // Some or all backwards are split into an input part (I) and a weight part (W).
  bool splits_backward = false;
  // All forwards of a step come before its first backward. The activations of all microbatches are
  // in memory at once, and a pipeline of one stage does not alternate forwards and backwards. In
  // all other schedules, the number of microbatches in flight is limited by the number of stages.
  bool keeps_all_activations = false;
  // Allows encoder_order interleaved: stages of encoders on the same ranks join those of the
  // language module as virtual stages of schedule interleaved.
  bool interleaves_encoders = false;
};
inline constexpr int kAnyVirtualStages = std::numeric_limits<int>::max();

// Indexed by kind. A new schedule needs one row here, an enumerator and a generator function.
inline constexpr Schedule kSchedules[] = {
    {.kind = ScheduleKind::gpipe,
     .name = "gpipe",
     .refusal = schedules::any,
     .order = schedules::gpipe,
     .following = ScheduleKind::gpipe,
     .max_virtual_stages = kAnyVirtualStages,
     .keeps_all_activations = true},
    {.kind = ScheduleKind::one_f_one_b,
     .name = "1f1b",
     .refusal = schedules::one_stage_a_rank,
     .order = schedules::one_f_one_b,
     .interleaves_encoders = true},
    {.kind = ScheduleKind::interleaved,
     .name = "interleaved",
     .refusal = schedules::groups_of_ranks,
     .order = schedules::interleaved,
     .min_virtual_stages = 2,
     .max_virtual_stages = kAnyVirtualStages,
     .groups_of_ranks = true,
     .interleaves_encoders = true},
    {.kind = ScheduleKind::zero_bubble,
     .name = "zero-bubble",
     .refusal = schedules::one_stage_a_rank,
     .order = schedules::zero_bubble,
     .splits_backward = true},
    {.kind = ScheduleKind::zero_bubble_h2,
     .name = "zb-h2",
     .refusal = schedules::one_stage_a_rank,
     .order = schedules::zero_bubble_h2,
     .splits_backward = true},
    {.kind = ScheduleKind::zero_bubble_v,
     .name = "zb-v",
     .refusal = schedules::two_stages_a_rank,
     .order = schedules::zero_bubble_v,
     .place = schedules::v_shape,
     .min_virtual_stages = 2,
     .max_virtual_stages = 2,
     .splits_backward = true},
    {.kind = ScheduleKind::dualpipe_v,
     .name = "dualpipe-v",
     .refusal = schedules::two_stages_and_twice_the_ranks,
     .order = schedules::dualpipe_v,
     .place = schedules::v_shape,
     .min_virtual_stages = 2,
     .max_virtual_stages = 2,
     .min_microbatches_per_rank = 2,
     .splits_backward = true},
    {.kind = ScheduleKind::eager_one_f_one_b,
     .name = "eager-1f1b",
     .refusal = schedules::one_stage_a_rank,
     .order = schedules::eager_one_f_one_b},
    {.kind = ScheduleKind::v_half,
     .name = "v-half",
     .refusal = schedules::two_stages_a_rank,
     .order = schedules::v_half,
     .place = schedules::v_shape,
     .min_virtual_stages = 2,
     .max_virtual_stages = 2,
     .listed = false,
     .splits_backward = true},
    {.kind = ScheduleKind::v_min,
     .name = "v-min",
     .refusal = schedules::two_stages_a_rank,
     .order = schedules::v_min,
     .place = schedules::v_shape,
     .min_virtual_stages = 2,
     .max_virtual_stages = 2,
     .listed = false,
     .splits_backward = true},
    {.kind = ScheduleKind::interleaved_zero_bubble,
     .name = "interleaved-zb",
     .refusal = schedules::groups_of_ranks,
     .order = schedules::interleaved_zero_bubble,
     .min_virtual_stages = 2,
     .max_virtual_stages = kAnyVirtualStages,
     .groups_of_ranks = true,
     .listed = false,
     .splits_backward = true},
};
inline constexpr auto kLastSchedule = static_cast<ScheduleKind>(std::size(kSchedules) - 1);

constexpr const Schedule& schedule(ScheduleKind kind) {
  return kSchedules[static_cast<std::size_t>(kind)];
}
const char* name(ScheduleKind kind);

// Returns the schedule of a pipeline for which none is chosen: 1f1b, or interleaved if its ranks
// have several virtual stages.
constexpr ScheduleKind default_schedule(int virtual_stages) {
  return virtual_stages > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
}

// Returns `warm_up` forwards, then one forward, one backward, alternating, then the remaining
// backwards; all of one stage of branch 0.
Actions one_and_one(int warm_up, int microbatches, int stage = 0);

// Returns the order of interleaved, with `per_rank` forwards of the warm-up for each later rank.
Actions interleaved_order(const Pipeline& pipeline, int rank, int per_rank);

}  // namespace polyphony
