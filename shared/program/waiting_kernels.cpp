#include "shared/program/waiting_kernels.h"

#include <variant>

#include "shared/program/expand_op.h"
#include "shared/program/queue_order.h"

namespace polyphony {

WaitingKernels waiting_kernels(const Program& program, Rank rank) {
  bool apart = false, inside = false;
  const Range own = program.ops_of(rank);
  for (std::uint32_t id = own.begin; id < own.end; ++id) {
    const Op& op = program.ops[id];
    if (const auto* collective = std::get_if<Collective>(&op.what))
      apart = apart || program.groups[collective->group.value].members.size() > 1;
    else if (std::holds_alternative<Compute>(op.what) && !inside)
      inside = op.group.valid() && !expand(program, OpId(id)).collectives.empty();
  }
  return {static_cast<int>(channels_of(program, rank).size()), int{apart} + int{inside}};
}

}  // namespace polyphony
