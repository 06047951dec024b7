// The loops of exec/cuda/drive.h on a GPU. For .cu files alone.
#pragma once

#include <cuda_runtime.h>

#include "exec/cuda/drive.h"

namespace polyphony::exec::kernels {

constexpr int kEachBlock = 256;
constexpr int kBlocksOfProcessor = 16;  // then threads go round

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

// In lane 0 of a warp that all of whose lanes call.
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
  extern __shared__ double columns_memory[];  // double: the widest alignment of a column
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

inline const char* text_of(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template <class Body>
const char* launch_each(const Body& body, std::int64_t count, const Place& place) {
  const std::int64_t wanted = (count + kEachBlock - 1) / kEachBlock;
  const std::int64_t most = static_cast<std::int64_t>(place.processors) * kBlocksOfProcessor;
  const auto blocks = static_cast<unsigned>(wanted < most ? wanted : most);
  each_kernel<Body>
      <<<blocks, kEachBlock, 0, static_cast<cudaStream_t>(place.stream)>>>(body, count);
  return text_of(cudaGetLastError());
}

template <class Body>
const char* launch_rows(const Body& body, const RowShape& shape, const Place& place) {
  const auto columns =
      static_cast<std::size_t>(shape.packs) * Body::kColumns * sizeof(typename Body::Column);
  constexpr std::size_t kWithoutAsking = 46 * 1024;  // of 48 KiB, less what a block shares besides
  if (columns > kWithoutAsking) {
    const cudaError_t error = cudaFuncSetAttribute(
        rows_kernel<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(columns));
    if (error != cudaSuccess) return text_of(error);
  }
  rows_kernel<Body><<<static_cast<unsigned>(shape.blocks), lanes_for(shape.packs), columns,
                      static_cast<cudaStream_t>(place.stream)>>>(body, shape);
  return text_of(cudaGetLastError());
}

}  // namespace polyphony::exec::kernels

// At the end of a .cu file, for each body.
#define POLYPHONY_EACH(...) \
  template const char* launch_each<__VA_ARGS__>(const __VA_ARGS__&, std::int64_t, const Place&)
#define POLYPHONY_ROWS(...) \
  template const char* launch_rows<__VA_ARGS__>(const __VA_ARGS__&, const RowShape&, const Place&)
