// The named pipeline schedules: in which order the ranks of one pipeline run its actions, and which
// stages each rank holds. kSchedules has one row per schedule.
//   p, pp: rank and number of ranks of the pipeline; vpp: virtual stages per rank
//
//   gpipe        all forwards, then all backwards, in the same order of microbatches
//   1f1b         warm-up of as many forwards as there are stages after the rank's, then one
//                forward, one backward, alternating
//   interleaved  1f1b over virtual stages: microbatches run in groups of pp, each group through
//                chunk 0, then chunk 1, …; warm-up 2·(pp − p − 1) + (vpp − 1)·pp
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
//
// Sources: Huang et al., arXiv 1811.06965 (gpipe); Narayanan et al., arXiv 2104.04473 §2.2 (1f1b,
// interleaved); Qi et al., arXiv 2401.10241 §3 and §6 (zero-bubble, zb-h2) and arXiv 2405.15362
// (zb-v); DualPipe-V: DeepSeek-V3, arXiv 2412.19437 §3.2.1, cut in half as in Sea AI Lab's note of
// 2025; eager: Zhuang et al., arXiv 2211.05322.
#pragma once

#include <iterator>
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
  eager_one_f_one_b
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
}  // namespace schedules

struct Schedule {
  ScheduleKind kind;
  const char* name;
  std::string (*refusal)(const Pipeline&);
  Actions (*order)(const Pipeline&, int rank);
  int (*place)(const Pipeline&, int stage) = schedules::round_robin;
  // Schedule of the branches that the pipeline feeds.
  ScheduleKind following = ScheduleKind::one_f_one_b;
};

// Indexed by kind. A new schedule needs one row here, an enumerator and a generator function.
inline constexpr Schedule kSchedules[] = {
    {ScheduleKind::gpipe, "gpipe", schedules::any, schedules::gpipe, schedules::round_robin,
     ScheduleKind::gpipe},
    {ScheduleKind::one_f_one_b, "1f1b", schedules::one_stage_a_rank, schedules::one_f_one_b},
    {ScheduleKind::interleaved, "interleaved", schedules::groups_of_ranks, schedules::interleaved},
    {ScheduleKind::zero_bubble, "zero-bubble", schedules::one_stage_a_rank, schedules::zero_bubble},
    {ScheduleKind::zero_bubble_h2, "zb-h2", schedules::one_stage_a_rank, schedules::zero_bubble_h2},
    {ScheduleKind::zero_bubble_v, "zb-v", schedules::two_stages_a_rank, schedules::zero_bubble_v,
     schedules::v_shape},
    {ScheduleKind::dualpipe_v, "dualpipe-v", schedules::two_stages_and_twice_the_ranks,
     schedules::dualpipe_v, schedules::v_shape},
    {ScheduleKind::eager_one_f_one_b, "eager-1f1b", schedules::one_stage_a_rank,
     schedules::eager_one_f_one_b},
};
inline constexpr auto kLastSchedule = static_cast<ScheduleKind>(std::size(kSchedules) - 1);

constexpr const Schedule& schedule(ScheduleKind kind) {
  return kSchedules[static_cast<std::size_t>(kind)];
}
const char* name(ScheduleKind kind);

// Returns `warm_up` forwards, then one forward, one backward, alternating, then the remaining
// backwards; all of one stage of branch 0.
Actions one_and_one(int warm_up, int microbatches, int stage = 0);

}  // namespace polyphony
