// Placement and legality rules of the schedules. Their orders: one_f_one_b.cpp, zero_bubble.cpp,
// v_shaped.cpp.
#include "shared/schedule/schedule.h"

#include <algorithm>

namespace polyphony {
namespace {

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kSchedules); ++i)
    if (kSchedules[i].kind != static_cast<ScheduleKind>(i)) return false;
  return true;
}
static_assert(in_order(), "kSchedules must be in the order of the enumerators");

std::string number(int value) { return std::to_string(value); }

}  // namespace

const char* name(ScheduleKind kind) { return schedule(kind).name; }

char letter(ActionKind kind) { return "FBIW"[static_cast<std::size_t>(kind)]; }

const char* name(Recipe recipe) {
  switch (recipe) {
    case Recipe::layout:
      return "layout";
    case Recipe::none:
      return "none";
    case Recipe::selective:
      return "selective";
    case Recipe::full:
      return "full";
    case Recipe::offload:
      return "offload";
  }
  return "?";
}

namespace schedules {

int round_robin(const Pipeline& pipeline, int stage) { return stage % pipeline.ranks; }

int v_shape(const Pipeline& pipeline, int stage) {
  return std::min(stage, pipeline.stages() - 1 - stage);
}

std::string any(const Pipeline&) { return ""; }

std::string one_stage_a_rank(const Pipeline& pipeline) {
  if (pipeline.virtual_stages == 1) return "";
  return "runs one stage per rank, but vpp is " + number(pipeline.virtual_stages) +
         "; use interleaved or gpipe, or vpp 1";
}

std::string groups_of_ranks(const Pipeline& pipeline) {
  const int pp = pipeline.ranks, microbatches = pipeline.microbatches;
  if (pp == 1 || pipeline.virtual_stages == 1)
    return "needs pp and vpp above 1 (got " + number(pp) + " and " +
           number(pipeline.virtual_stages) + "); use 1f1b";
  if (microbatches % pp == 0) return "";
  return "needs a multiple of pp " + number(pp) + " microbatches (got " + number(microbatches) +
         "); nearest legal: " + (microbatches > pp ? number(microbatches / pp * pp) + " or " : "") +
         number((microbatches / pp + 1) * pp);
}

std::string two_stages_a_rank(const Pipeline& pipeline) {
  if (pipeline.ranks == 1 || pipeline.virtual_stages != 2)
    return "places stages down the ranks and up again, so it needs pp above 1 and vpp 2 (got " +
           number(pipeline.ranks) + " and " + number(pipeline.virtual_stages) + ")";
  if (pipeline.after > 0)
    return "ends on its first rank and cannot feed another module; use zero-bubble for a language "
           "module that feeds another";
  return "";
}

std::string two_stages_and_twice_the_ranks(const Pipeline& pipeline) {
  if (std::string why = two_stages_a_rank(pipeline); !why.empty()) return why;
  if (pipeline.microbatches >= 2 * pipeline.ranks) return "";
  return "needs at least 2·pp = " + number(2 * pipeline.ranks) + " microbatches (got " +
         number(pipeline.microbatches) + "); use zb-v";
}

}  // namespace schedules
}  // namespace polyphony
