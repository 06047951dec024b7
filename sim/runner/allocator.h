// Settings of malloc for the programs of this folder.
//
// Lowering allocates and frees lists of some hundred KiB for every chunk. If that memory were
// returned to the operating system, it would be faulted in again each time, which doubles the time
// for deep models. So freed memory is kept, up to 64 MiB at the top of the heap.
//
// The large arrays of a Program are allocated by mmap (4 MiB and more), where they can grow in
// place. In the heap, each would leave holes behind, which doubles the memory of long pipelines.
#pragma once

#include <malloc.h>

namespace polyphony::sim {

// Applies these settings to the calling process.
inline void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

}  // namespace polyphony::sim
