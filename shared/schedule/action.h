// An action is one computation of a rank within a step: a forward or a backward of one stage for
// one microbatch. A schedule decides the order of a rank's actions (shared/schedule/schedule.h);
// messages, gathers, reductions and frees are derived from that order (shared/lower/lower.h).
//   F  forward
//   B  whole backward
//   I  input part of the backward: the gradient of the stage's input
//   W  weight part of the backward: the gradients of the weights, after I
//
// Each (branch, stage, microbatch) has one F. If it has a backward, it also has either one B, or
// one I and a later W. A microbatch is never split further: a planner that needs shorter backwards
// makes more microbatches.
//
// A forward has a recipe, which states what its backward recomputes in all blocks of the stage, in
// place of the layout's setting. Recipe offload recomputes nothing and moves the saved activations
// to host memory until the backward needs them.
//
// An action with `overlapped` set forms a pair with the next one (a forward and a backward, as in
// DualPipe). The executor runs the two one after the other, and the simulator prices them so:
// devices have a single compute queue here, so a pair is never predicted to be faster than its
// parts.
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony {

enum class ActionKind : std::uint8_t { forward, backward, backward_input, backward_weight };

enum class Recipe : std::uint8_t { layout, none, selective, full, offload };
constexpr Recipe last_of(Recipe) { return Recipe::offload; }

struct Action {
  ActionKind kind = ActionKind::forward;
  bool overlapped = false;         // true: forms a pair with the next action
  std::uint16_t branch = 0;        // index into Plan::branches
  std::uint16_t stage = 0;         // stage of the branch, in the order of the data flow
  std::int32_t work = 0;           // microbatch of the branch: Work::index
  Recipe recipe = Recipe::layout;  // forwards only
  auto operator<=>(const Action&) const = default;
};
using Actions = std::vector<Action>;

// Returns an action of branch 0.
inline Action make_action(ActionKind kind, int stage, int work) {
  return {kind, false, 0, static_cast<std::uint16_t>(stage), work, Recipe::layout};
}

// Returns 'F', 'B', 'I' or 'W'.
char letter(ActionKind kind);
// Returns "layout", "none", "selective", "full" or "offload".
const char* name(Recipe recipe);
inline bool is_forward(const Action& action) { return action.kind == ActionKind::forward; }
// Returns true for B and I: the action receives a gradient and sends one on to the previous stage.
inline bool returns_gradient(const Action& action) {
  return action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
}

}  // namespace polyphony
