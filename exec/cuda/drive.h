// The loops that run a kernel body (exec/cuda/portable.h): on a GPU those of exec/cuda/launch.cuh,
// on a CPU those below, which take the same steps in the same order. There are two kinds of loop.
//
// each: calls body(i) for all i < count, in any order.
//
// rows: for each row, the lanes of a block take its packs in turn, and each lane sums its packs.
// The lanes' sums are joined as a tree whose shape depends only on the number of lanes. Blocks take
// the rows block, block + blocks, …. So the order of all sums is fixed, without atomics. Such a
// body has:
//   Sum start() const; void take(Sum&, row, pack) const; static void join(Sum&, const Sum&)
//   void one(row, sum) const: called by one lane with the row's sum
//   void put(row, pack, sum, columns, stride) const: called by the lane that took the pack,
//   if kPuts
//   store_columns(block, pack, columns, stride) const: writes the column sums at the end
//
// Columns are sums over the rows of a block: kColumns of them for each pack (0: none), of the
// body's type Column; the i-th is columns[i · stride].
#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/portable.h"

namespace polyphony::exec::kernels {

// Where a kernel is launched; `stream` is a cudaStream_t.
struct Place {
  void* stream = nullptr;
  int processors = 1;  // multiprocessors of the device
};

constexpr int kLanes = 32;  // lanes of a warp
constexpr int kLargestBlock = 512;

// Returns the number of lanes of a block for rows of `packs` packs: a multiple of a warp's lanes.
constexpr int lanes_for(std::int64_t packs) {
  const std::int64_t lanes = (packs + kLanes - 1) / kLanes * kLanes;
  return lanes < kLanes ? kLanes : static_cast<int>(lanes < kLargestBlock ? lanes : kLargestBlock);
}

struct RowShape {
  std::int64_t rows = 0, packs = 0;  // number of rows; packs per row
  int blocks = 1;
};

// Launches a kernel for the body; returns null, or an error message. Defined for each body in a .cu
// file.
template <class Body>
const char* launch_each(const Body& body, std::int64_t count, const Place& place);
template <class Body>
const char* launch_rows(const Body& body, const RowShape& shape, const Place& place);

template <class Body>
void each(const Body& body, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// Joins the lanes' sums as the GPU's warp shuffles do: lane i joins the sum of lane i + step, with
// the step halved each time.
template <class Body, class Sum>
void join_lanes(Sum* sums, int count) {
  for (int step = count / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) Body::join(sums[i], sums[i + step]);
}

// Base of bodies without columns.
struct NoColumns {
  using Column = float;
  static constexpr int kColumns = 0;
  POLYPHONY_BOTH void store_columns(int, std::int64_t, const float*, std::int64_t) const {}
};
// Base of bodies that write in one() only.
struct NoPuts : NoColumns {
  static constexpr bool kPuts = false;
  template <class Sum>
  POLYPHONY_BOTH void put(std::int64_t, std::int64_t, const Sum&, const float*,
                          std::int64_t) const {}
};

// Base of bodies whose sum for a row is a single number.
template <class W>
struct OneSum {
  W value;
};
template <class W>
struct SumsOne {
  POLYPHONY_BOTH OneSum<W> start() const { return {0}; }
  POLYPHONY_BOTH static void join(OneSum<W>& sum, const OneSum<W>& other) {
    sum.value += other.value;
  }
};

template <class Body>
void rows(const Body& body, const RowShape& shape) {
  using Column = typename Body::Column;
  const int lanes = lanes_for(shape.packs);
  for (int block = 0; block < shape.blocks; ++block) {
    std::vector<Column> columns(static_cast<std::size_t>(shape.packs) * Body::kColumns, Column{});
    for (std::int64_t row = block; row < shape.rows; row += shape.blocks) {
      std::vector<typename Body::Sum> sums(static_cast<std::size_t>(lanes), body.start());
      for (std::int64_t pack = 0; pack < shape.packs; ++pack)
        body.take(sums[static_cast<std::size_t>(pack % lanes)], row, pack);
      std::vector<typename Body::Sum> warps(kLanes, body.start());
      for (int warp = 0; warp < lanes / kLanes; ++warp) {
        join_lanes<Body>(sums.data() + warp * kLanes, kLanes);
        warps[static_cast<std::size_t>(warp)] = sums[static_cast<std::size_t>(warp * kLanes)];
      }
      join_lanes<Body>(warps.data(), kLanes);
      body.one(row, warps[0]);
      for (std::int64_t pack = 0; Body::kPuts && pack < shape.packs; ++pack)
        body.put(row, pack, warps[0], columns.data() + pack, shape.packs);
    }
    for (std::int64_t pack = 0; Body::kColumns > 0 && pack < shape.packs; ++pack)
      body.store_columns(block, pack, columns.data() + pack, shape.packs);
  }
}

}  // namespace polyphony::exec::kernels
