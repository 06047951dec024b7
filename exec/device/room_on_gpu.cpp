#include "exec/device/room_on_gpu.h"

#include <algorithm>
#include <cstdlib>

#include "exec/device/device_family.h"

namespace polyphony::exec {

std::string lacks_processors(const WaitingKernels& kernels, int processors) {
  constexpr int kLeft = 16, kOfCollective = 32;
  const char* limit = std::getenv("NCCL_MAX_CTAS");
  const int most = limit != nullptr ? std::atoi(limit) : 0,
            each = most > 0 ? std::min(most, kOfCollective) : kOfCollective,
            all = kernels.messages * kMessageProcessors + kernels.collectives * each;
  if (all + kLeft <= processors) return {};
  return "messages on " + std::to_string(kernels.messages) +
         " channels from and to other ranks, and collectives, can take " + std::to_string(all) + " of a GPU's " +
         std::to_string(processors) + " multiprocessors while they wait, and " +
         std::to_string(kLeft) + " must be left for computing";
}

}  // namespace polyphony::exec
