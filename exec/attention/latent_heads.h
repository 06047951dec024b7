// Makes the heads of multi-head latent attention (MLA) from three inputs. A = heads on this rank; a
// query or key has D elements without and R elements with rotary positions; a value has Dv
// elements.
//   queries [T, A·(D + R)], per head [plain | rotated]
//   keys and values [T, A·(D + Dv)], per head [k | v]
//   one shared key [T, R], which is rotated and appended to every head's key
// Scores are divided by √(D + R). Source: DeepSeek-V2, arXiv 2405.04434, §2.1.3.
#pragma once

#include <memory>

#include "exec/attention/attention.h"

namespace polyphony::exec {

struct LatentShape {
  std::int64_t heads = 1;    // A
  std::int64_t plain = 1;    // D
  std::int64_t rotated = 2;  // R
  std::int64_t value = 1;    // Dv
};
std::shared_ptr<const HeadMaker> latent_heads(const LatentShape& shape);

}  // namespace polyphony::exec
