// A turn: what a rank computes next of its step. The order of the turns of a rank is what a schedule
// decides (shared/schedule/schedule.h); messages, gathers, reductions and frees follow from it
// (shared/lower/lower.h).
//   F  forward    B  backward    I  backward of the input alone, W  of the weights, later
//   Each (branch, stage, work item) has one F and, where something is learnt, one B, or one I and
//   after it one W. Works are never cut into parts: a planner that wants shorter backwards makes
//   more works.
//   A forward has a recipe: what its backward makes again of it, of all blocks of the stage, in place
//   of what the layout says; offload: nothing, and what it keeps waits in the host's memory.
//   A pair is a turn that is `overlapped` with the next one (a forward beside a backward). The
//   executor runs the two one after the other, and the simulator prices them so: no device of ours
//   has two compute queues, so that a pair is never predicted to be faster than its parts.
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony {

enum class TurnKind : std::uint8_t { forward, backward, backward_input, backward_weight };

enum class Recipe : std::uint8_t { layout, none, selective, full, offload };
constexpr Recipe last_of(Recipe) { return Recipe::offload; }

struct Turn {
  TurnKind kind = TurnKind::forward;
  bool overlapped = false;         // with the turn after it
  std::uint16_t branch = 0;        // Plan::branches
  std::uint16_t stage = 0;         // of the branch's stages, in the order of the data
  std::int32_t work = 0;           // microbatch: Work::index
  Recipe recipe = Recipe::layout;  // of a forward
  auto operator<=>(const Turn&) const = default;
};
using Turns = std::vector<Turn>;

// A turn of branch 0.
inline Turn make_turn(TurnKind kind, int stage, int work) {
  return {kind, false, 0, static_cast<std::uint16_t>(stage), work, Recipe::layout};
}

// "F" "B" "I" "W".
char letter(TurnKind kind);
// "layout" "none" "selective" "full" "offload".
const char* name(Recipe recipe);
inline bool is_forward(const Turn& turn) { return turn.kind == TurnKind::forward; }
// Takes the gradient that comes back, and sends it on: B or I.
inline bool returns_gradient(const Turn& turn) {
  return turn.kind == TurnKind::backward || turn.kind == TurnKind::backward_input;
}

}  // namespace polyphony
