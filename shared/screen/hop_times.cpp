#include "shared/screen/hop_times.h"

#include <memory>

#include "shared/cost/message_time.h"

namespace polyphony {

HopTimes hop_times(const Cluster& cluster, const HardwareProfile& profile) {
  const auto shared = std::make_shared<const MessageTimes>(cluster.healthy(), profile);
  return [shared, blocking = profile.stack.blocking_messages](const ModuleLayout& grid, int from,
                                                              int to, Bytes sent, bool returned) {
    const MessageTimes& times = *shared;
    const Rank sender = grid.rank_at(0, 0, 0, from), receiver = grid.rank_at(0, 0, 0, to);
    const double rows = times.of(sender, receiver, sent).count();
    const double gradients = returned ? times.of(receiver, sender, sent).count() : 0;
    return Hop{returned ? rows : 0, gradients + (blocking ? rows : 0)};
  };
}

}  // namespace polyphony
