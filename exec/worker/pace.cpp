#include "exec/worker/pace.h"

#include "shared/cost/cost_model.h"

namespace polyphony::exec {

Runner::Pace make_pace(const Program& program, Rank rank, const Cluster& cluster,
                       const HardwareProfile& profile, double scale) {
  Runner::Pace pace(program.ops.size());
  const Range ops = program.ops_of(rank);
  for (std::uint32_t i = ops.begin; i < ops.end; ++i)
    if (std::holds_alternative<Compute>(program.ops[i].what))
      pace[i] = scale * compute_time(program, OpId(i), cluster, profile);
  return pace;
}

}  // namespace polyphony::exec
