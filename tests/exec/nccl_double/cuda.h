// The streams and devices of the double of CUDA's runtime. Internal to tests/exec/nccl_double/.
#pragma once

#include <c10/core/Stream.h>
#include <cuda_runtime_api.h>

#include <string>

// A stream of the queued device, as CUDA's callers hold it. The default stream is null.
struct CUstream_st {
  c10::DeviceIndex device;
  c10::StreamId id;
};

namespace polyphony::exec::testing::nccl {

cudaStream_t handle_of(const c10::Stream& stream);
// Returns false if no stream has this handle, which is not null.
bool is_stream(cudaStream_t handle);

// Makes device `second` have the UUID of `first`, as two ranks on one GPU see it; -1: no device.
void share_gpu(int first, int second);

}  // namespace polyphony::exec::testing::nccl
