// What several ranks' traces come to, as rows: collectives by shape with their bandwidths, matrix products by
// size with their rates, kernels by name.
//   A collective's kernel lasts while its rank waits for the others, so that its median is of the job as it
//   ran, and the shortest is nearest to what the links give. Bandwidths as nccl-tests has them
//   (doc/PERFORMANCE.md): bytes over time, and that times the bus factor.
#pragma once

#include <vector>

#include "traces/kineto/ranks.h"

namespace polyphony::traces {

struct CollectiveRow {
  CollectiveShape shape;
  std::int64_t count = 0;  // on all ranks
  Nanoseconds total{}, median{}, shortest{};
  // Of the median; nothing where the bytes, or for the bus the group's size, are not told.
  std::optional<BytesPerSecond> algorithm = {}, bus = {};
  std::optional<BytesPerSecond> best_bus = {};  // of the shortest
};
struct ProductRow {
  MatrixProduct product;
  std::int64_t count = 0;  // kernels
  Nanoseconds total{};
  FlopsPerSecond rate{};
};
struct KernelRow {
  std::string name;
  KernelClass kind = KernelClass::unknown;
  std::int64_t count = 0;
  Nanoseconds total{};
};
// Each with the longest first.
std::vector<CollectiveRow> collective_rows(const RankSet& ranks);
std::vector<ProductRow> product_rows(const RankSet& ranks);
std::vector<KernelRow> kernel_rows(const RankSet& ranks);

}  // namespace polyphony::traces
