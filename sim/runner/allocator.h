// How the programs of this folder keep memory. Lowering makes and drops lists of some hundred KiB
// for every chunk: memory that went back to the system would be faulted in anew each time (twice
// the time of deep models). The large arrays of a Program stay apart from it, and grow in place:
// among small ones each would leave holes behind (twice the memory of long pipelines).
#pragma once

#include <malloc.h>

namespace polyphony::sim {

inline void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

}  // namespace polyphony::sim
