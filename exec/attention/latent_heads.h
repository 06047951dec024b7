// Heads of latent attention, of three kinds of rows (A heads on this rank, D plain and R rotated
// numbers of a query or key, Dv of a value):
//   queries [T, A·(D + R)], by head [plain | rotated]; keys and values [T, A·(D + Dv)], by head
//   [k | v]; one key [T, R] whose rotated numbers end every head's key
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
