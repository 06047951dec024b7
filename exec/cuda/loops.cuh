// The loops of exec/cuda/drive.h for the threads of a GPU. Included by .cu files through
// exec/cuda/launch.cuh, and by a test that runs them as threads of a CPU
// (tests/exec/cuda/device_loops_test.cpp). The including file must provide CUDA's keywords and
// built-ins.
#pragma once

#include "exec/cuda/drive.h"

namespace polyphony::exec::kernels {

constexpr int kEachBlock = 256;

template <class Body>
__global__ void __launch_bounds__(kEachBlock) each_kernel(const Body body, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    body(i);
}

template <class Sum>
__device__ Sum from_lane_below(const Sum& sum, int step) {
  constexpr int kWords = static_cast<int>(sizeof(Sum) / 4);
  static_assert(sizeof(Sum) % 4 == 0, "shuffles take words");
  std::uint32_t words[kWords];
  memcpy(words, &sum, sizeof sum);
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(0xFFFFFFFFU, words[i], step);
  Sum other;
  memcpy(&other, words, sizeof other);
  return other;
}

// Joins the sums of a warp's lanes into that of lane 0. All lanes of the warp must call it.
template <class Body, class Sum>
__device__ void join_warp(Sum& sum) {
  for (int step = kLanes / 2; step > 0; step /= 2) Body::join(sum, from_lane_below(sum, step));
}

template <class Body>
__global__ void __launch_bounds__(kLargestBlock) rows_kernel(const Body body, RowShape shape) {
  using Sum = typename Body::Sum;
  using Column = typename Body::Column;
  __shared__ Sum warps[kLanes];
  __shared__ Sum whole;
  POLYPHONY_BLOCK_MEMORY(double, columns_memory);  // the widest alignment of a column
  Column* const columns = reinterpret_cast<Column*>(columns_memory);
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  if constexpr (Body::kColumns > 0)
    for (std::int64_t pack = threadIdx.x; pack < shape.packs; pack += blockDim.x)
      for (int i = 0; i < Body::kColumns; ++i) columns[i * shape.packs + pack] = Column{};
  for (std::int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    Sum sum = body.start();
    for (std::int64_t pack = threadIdx.x; pack < shape.packs; pack += blockDim.x)
      body.take(sum, row, pack);
    join_warp<Body>(sum);
    if (lane == 0) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      sum = lane < static_cast<int>(blockDim.x) / kLanes ? warps[lane] : body.start();
      join_warp<Body>(sum);
      if (lane == 0) {
        whole = sum;
        body.one(row, sum);
      }
    }
    __syncthreads();
    sum = whole;
    if constexpr (Body::kPuts)
      for (std::int64_t pack = threadIdx.x; pack < shape.packs; pack += blockDim.x)
        body.put(row, pack, sum, columns + pack, shape.packs);
  }
  if constexpr (Body::kColumns > 0)
    for (std::int64_t pack = threadIdx.x; pack < shape.packs; pack += blockDim.x)
      body.store_columns(static_cast<int>(blockIdx.x), pack, columns + pack, shape.packs);
}

}  // namespace polyphony::exec::kernels
