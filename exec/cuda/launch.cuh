// Launches the loops of exec/cuda/loops.cuh. Included by .cu files only.
#pragma once

#include <cuda_runtime.h>

// Declares dynamic shared memory, whose size is an argument of the launch.
#define POLYPHONY_BLOCK_MEMORY(type, name) extern __shared__ type name[]

#include "exec/cuda/loops.cuh"

namespace polyphony::exec::kernels {

constexpr int kBlocksOfProcessor = 16;  // at most; with more work, threads loop

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
  constexpr std::size_t kWithoutAsking = 46 * 1024;  // 48 KiB less a block's other shared memory
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

// Instantiate the launch function of a body; used at the end of a .cu file for each body.
#define POLYPHONY_EACH(...) \
  template const char* launch_each<__VA_ARGS__>(const __VA_ARGS__&, std::int64_t, const Place&)
#define POLYPHONY_ROWS(...) \
  template const char* launch_rows<__VA_ARGS__>(const __VA_ARGS__&, const RowShape&, const Place&)
