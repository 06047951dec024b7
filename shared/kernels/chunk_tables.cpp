#include "shared/kernels/chunk_tables.h"

namespace polyphony {

// Copies one list of sequence starts and one of their rows. If routers are balanced, also copies
// the lists of samples and of their tokens.
void ChunkTables::forward() {
  const bool balanced = module_.experts > 0 && module_.balance_weight > 0;
  add(KernelKind::embedding, 0, (balanced ? 2 : 1) * size_.tokens * kIndex, balanced ? 4 : 2);
  if (module_.kind == ModuleKind::language)
    rotation(size_.tokens, module_.rope_sections.empty() ? 1 : 3);
  if (module_.kind == ModuleKind::vision && module_.rotary) {
    // Row and column positions of patches.
    add(KernelKind::embedding, 0, 2 * size_.tokens * kIndex, 2);
    rotation(size_.tokens, 2);
  }
}

// Rotary tables; numbers in parentheses are launches, then passes.
//   Frequencies (3 launches: arange, divide, power).
//   Angles per axis: positions converted to fp64 (text only) times frequencies; concatenated if
//   there are several axes.
//   From the angles, half a head wide, in fp64 (passes): cosine (2), sine (2), negated sine (2),
//   both halves concatenated (4 and 4).
//   Then both tables are converted to their own format.
void ChunkTables::rotation(std::int64_t rows, int axes) {
  constexpr std::int64_t kWide = 8;
  const int rotated = module_.rotary_dim > 0 ? module_.rotary_dim : module_.head_dim;
  const std::int64_t half = rows * rotated / 2;
  const bool text = module_.kind == ModuleKind::language, joined = axes > 1;
  add(KernelKind::elementwise, 0,
      (text ? axes * rows * 2 : 0) * kIndex + half * (joined ? 3 : 1) * kWide,
      3 + (text ? 2 : 1) * axes + (joined ? 1 : 0));
  add(KernelKind::elementwise, 0, half * 14 * kWide, 5);
  const std::int64_t table = wide_element();
  if (table != kWide) add(KernelKind::elementwise, 0, 2 * 2 * half * (kWide + table), 2);
  if (module_.rope_attention != 1)  // both tables, read and written
    add(KernelKind::elementwise, 0, 2 * 2 * 2 * half * table, 2);
}

}  // namespace polyphony
