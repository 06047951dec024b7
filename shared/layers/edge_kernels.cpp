#include "shared/layers/edge_kernels.h"

namespace polyphony {

void EdgeKernels::in(bool reads_conditioning) {
  if (reads_conditioning && sequence()) gather(size_.condition, module_.condition);
  const std::int64_t others = size_.tokens - size_.text_tokens;
  // A copy, to which the rows are added. Under sequence parallelism a rank writes the rows that it
  // has into a zeroed array instead.
  const std::int64_t rows =
      sequence() ? size_.tokens + 2 * own(others) : 2 * size_.tokens + 3 * others;
  for (int edge = 0; edge < context_.added_edges; ++edge)
    add(KernelKind::embedding, 0, rows * hidden() * element(), 2);
  if (context_.added_edges == 0 || !sequence()) return;
  scatter(size_.tokens, hidden());
  passes(between_blocks(), 3, context_.added_edges);
}

void EdgeKernels::out(bool reads_conditioning) {
  if (!context_.input_grad || !context_.edge_grad) return;
  // Once for all blocks: each rank has the part of the gradient that comes from its heads.
  if (reads_conditioning) sum(size_.condition, module_.condition);
  if (context_.added_edges > 0 && sequence()) gather(size_.tokens, hidden());
  for (int edge = 0; edge < context_.added_edges; ++edge)
    add(KernelKind::embedding, 0, 2 * own(size_.tokens - size_.text_tokens) * hidden() * element(),
        1);
}

}  // namespace polyphony
