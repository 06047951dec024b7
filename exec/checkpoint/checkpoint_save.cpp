#include "exec/checkpoint/checkpoint.h"
#include "exec/checkpoint/checkpoint_parts.h"
#include "exec/checkpoint/checkpoint_writer.h"

namespace polyphony::exec {

void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     const RankState& state, const Program& structure,
                     const KeptCheckpoints& keep) {
  CheckpointWriter writer(folder, step, transport.rank(), state, structure, keep);
  transport.barrier();
  writer.write();
  const std::vector<TwoNumbers> digests = gather(transport, writer.digest());
  writer.throw_failure();
  writer.publish(digests);
  transport.barrier();
}

void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     Runner& runner, const Program& structure, const std::string& run,
                     const KeptCheckpoints& keep) {
  save_checkpoint(folder, step, transport, runner_state(runner, transport.rank(), structure, run),
                  structure, keep);
}

}  // namespace polyphony::exec
