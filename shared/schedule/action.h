// An action: what a rank computes next of its step. The order of the actions of a rank is what a schedule
// decides (shared/schedule/schedule.h); messages, gathers, reductions and frees follow from it
// (shared/lower/lower.h).
//   F  forward    B  backward    I  backward of the input alone, W  of the weights, later
//   Each (branch, stage, work item) has one F and, where something is learnt, one B, or one I and
//   after it one W. Works are never cut into parts: a planner that wants shorter backwards makes
//   more works.
//   A forward has a recipe: what its backward makes again of it, of all blocks of the stage, in place
//   of what the layout says; offload: nothing, and what it keeps waits in the host's memory.
//   A pair is an action that is `overlapped` with the next one (a forward beside a backward). The
//   executor runs the two one after the other, and the simulator prices them so: no device of ours
//   has two compute queues, so that a pair is never predicted to be faster than its parts.
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony {

enum class ActionKind : std::uint8_t { forward, backward, backward_input, backward_weight };

enum class Recipe : std::uint8_t { layout, none, selective, full, offload };
constexpr Recipe last_of(Recipe) { return Recipe::offload; }

struct Action {
  ActionKind kind = ActionKind::forward;
  bool overlapped = false;         // with the action after it
  std::uint16_t branch = 0;        // Plan::branches
  std::uint16_t stage = 0;         // of the branch's stages, in the order of the data
  std::int32_t work = 0;           // microbatch: Work::index
  Recipe recipe = Recipe::layout;  // of a forward
  auto operator<=>(const Action&) const = default;
};
using Actions = std::vector<Action>;

// An action of branch 0.
inline Action make_action(ActionKind kind, int stage, int work) {
  return {kind, false, 0, static_cast<std::uint16_t>(stage), work, Recipe::layout};
}

// "F" "B" "I" "W".
char letter(ActionKind kind);
// "layout" "none" "selective" "full" "offload".
const char* name(Recipe recipe);
inline bool is_forward(const Action& action) { return action.kind == ActionKind::forward; }
// Takes the gradient that comes back, and sends it on: B or I.
inline bool returns_gradient(const Action& action) {
  return action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
}

}  // namespace polyphony
