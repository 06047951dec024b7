#include "exec/device/room_on_gpu.h"

#include <cstdlib>

namespace polyphony::exec {

std::string lacks_processors(const WaitingKernels& kernels, int processors) {
  constexpr int kLeft = 16, kOfCollective = 32;
  const char* limit = std::getenv("NCCL_MAX_CTAS");
  const int most = limit != nullptr ? std::atoi(limit) : 0,
            of_message = most > 0 ? most : kMessageProcessors,
            of_collective = most > 0 ? most : kOfCollective,
            all = kernels.messages * of_message + kernels.collectives * of_collective;
  if (all + kLeft <= processors) return {};
  return "messages on " + std::to_string(kernels.messages) +
         " channels from and to other ranks, and collectives, can take " + std::to_string(all) +
         " of a GPU's " + std::to_string(processors) + " multiprocessors while they wait, and " +
         std::to_string(kLeft) + " must be left for computing";
}

}  // namespace polyphony::exec
