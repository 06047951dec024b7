// Summarizes the traces of several ranks in rows: collectives by shape with their bandwidths, GEMMs
// by size with their rates, kernels by name.
//
// The kernel of a collective also lasts while its rank waits for the others: the median shows the
// job as it ran, and the shortest is closest to the rate of the links. Bandwidths are defined as in
// nccl-tests (doc/PERFORMANCE.md): bytes over time, and that times the bus factor.
#pragma once

#include <optional>
#include <vector>

#include "shared/work/work_size.h"
#include "traces/kineto/ranks.h"

namespace polyphony::traces {

struct CollectiveRow {
  CollectiveShape shape;
  std::int64_t count = 0;  // kernels on all ranks
  Nanoseconds total{}, median{}, shortest{};
  // Bandwidths of the median. Absent if the bytes (for `bus` also the group's size) are unknown.
  std::optional<BytesPerSecond> algorithm = {}, bus = {};
  std::optional<BytesPerSecond> best_bus = {};  // bus bandwidth of the shortest
};
// A call of an operator that multiplies matrices. It may launch several kernels: a grouped GEMM is
// preceded by one that prepares it, split sums are followed by their reduction.
struct ProductCall {
  MatrixProduct product;
  std::uint32_t op = kNone;  // as DeviceEvent::op
  std::int32_t step = -1;    // as DeviceEvent::step
  Nanoseconds time{};        // of its kernels
};
struct ProductRow {
  MatrixProduct product;
  std::int64_t count = 0;  // number of calls
  Nanoseconds total{};
  FlopsPerSecond rate{};
};
struct KernelRow {
  std::string name;
  KernelClass kind = KernelClass::unknown;
  std::int64_t count = 0;
  Nanoseconds total{};
};
// Returns the kind of collective that the cost model has for a call, if it has one.
std::optional<CollectiveKind> collective_kind(CollectiveCall call);
// Returns the FLOPs of one product.
Flops flops_of(const MatrixProduct& product);
// Returns the calls whose shapes were recorded, in the order of the file.
std::vector<ProductCall> product_calls(const DeviceTrace& trace);
// Each function returns its rows in order of decreasing total time.
std::vector<CollectiveRow> collective_rows(const RankSet& ranks);
std::vector<ProductRow> product_rows(const RankSet& ranks);
std::vector<KernelRow> kernel_rows(const RankSet& ranks);

}  // namespace polyphony::traces
