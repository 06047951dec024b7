#include "shared/work/rows.h"

namespace polyphony {

bool has_class_rows(const Module& module, int layer_end) {
  return module.class_token && layer_end >= 1 && layer_end <= 1 + module.layers;
}

std::int64_t rows_leaving(const Module& module, int layer_end, const WorkSize& size) {
  return size.tokens + (has_class_rows(module, layer_end) ? size.sequences : 0);
}

bool sees_all(const Module& module, int block) {
  return block_at(module, block).attention != AttentionKind::window;
}

WorkSize layer_size(const Module& module, int layer, const WorkSize& size) {
  WorkSize inside = size;
  if (module.kind == ModuleKind::diffusion || layer < 1 || layer > module.layers) return inside;
  inside.tokens = rows_leaving(module, layer, size);
  if (!sees_all(module, layer - 1)) {
    inside.pairs = size.window_pairs;
    inside.gathered_pairs = size.gathered_window_pairs;
  } else if (module.class_token) {  // Σ (n + 1)²
    inside.pairs = size.pairs + 2 * size.tokens + size.sequences;
  }
  return inside;
}

std::int64_t window_pairs(const Module& module, PatchGrid image) {
  if (module.window == 0) return 0;
  // Windows are the products of intervals of rows and of columns, so that the sum over windows of
  // (height · width)² is the product of the sums over intervals of length².
  const std::int64_t window = module.window;
  const auto squares = [&](std::int64_t side) {
    const std::int64_t rest = side % window;
    return side / window * window * window + rest * rest;
  };
  return squares(image.rows) * squares(image.columns);
}

}  // namespace polyphony
