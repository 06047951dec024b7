// Runs kernel bodies on the device of their tensors: on a GPU they are queued on this thread's
// current stream; on a CPU they run at once; on a test double of a GPU the CPU's loops are queued.
#pragma once

#include <functional>
#include <string>
#include <typeinfo>

#include "exec/cuda/drive.h"
#include "exec/on_device.h"
#include "exec/torch_pch.h"
#include "shared/error.h"

namespace polyphony::exec::kernels {

// ATen's element type for the element type of a body.
template <class T>
struct FormatOf {
  using Type = T;
};
template <>
struct FormatOf<Bf16> {
  using Type = at::BFloat16;
};
template <class T>
const T* read(const torch::Tensor& x) {
  return reinterpret_cast<const T*>(x.const_data_ptr<typename FormatOf<T>::Type>());
}
template <class T>
T* write(const torch::Tensor& x) {
  return reinterpret_cast<T*>(x.mutable_data_ptr<typename FormatOf<T>::Type>());
}
// Returns the options for a tensor of sums over elements of x: fp32 for bf16.
inline torch::TensorOptions wide_options(const torch::Tensor& x) {
  const auto format = x.scalar_type();
  return x.options().dtype(format == torch::kBFloat16 ? torch::kFloat32 : format);
}
// Returns true if all rows of `width` elements begin at a multiple of 16 bytes, provided that the
// first does.
template <class T>
bool rows_aligned(std::int64_t width) {
  return width % kPack<T> == 0;
}
template <class... Tensors>
bool all_aligned(const Tensors&... tensors) {
  return (is_aligned(tensors.const_data_ptr()) && ...);
}

// Calls use.operator()<T>() with the body's element type for this format.
template <class Use>
void by_format(torch::Dtype format, const Use& use) {
  if (format == torch::kBFloat16) return use.template operator()<Bf16>();
  if (format == torch::kFloat32) return use.template operator()<float>();
  POLYPHONY_CHECK(format == torch::kFloat64, "no kernel for " << format);
  use.template operator()<double>();
}

// Throws InternalError if `error` is not null.
void check_launch(const char* error);
// Returns how many blocks of `lanes` lanes run on the device at once, but at most `rows`.
int row_blocks(std::int64_t rows, torch::Device device, int lanes);

template <class T>
RowShape rows_of(std::int64_t rows, std::int64_t width, torch::Device device) {
  const std::int64_t packs = packs_of<T>(width);
  return {rows, packs, row_blocks(rows, device, lanes_for(packs))};
}

// The function with which a device that is neither a CPU nor a CUDA GPU queues the CPU's loops of a
// body; it also gets the body's name. A test double of a GPU registers it once, before any kernel
// runs; Forms::fused then applies to that device, too.
using QueueLoops = void (*)(torch::Device device, std::function<void()> loops,
                            const std::string& body);
void queue_loops_by(QueueLoops queue);
void queue_loops(torch::Device device, std::function<void()> loops, const std::type_info& body);

#if defined(POLYPHONY_KERNELS)
class OnDevice {
 public:
  explicit OnDevice(torch::Device device);
  const Place& place() const { return place_; }

 private:
  c10::DeviceGuard guard_;
  Place place_;
};
#endif

template <class Body>
void run_each(const Body& body, std::int64_t count, torch::Device device) {
  if (count == 0) return;
#if defined(POLYPHONY_KERNELS)
  if (device.is_cuda()) return check_launch(launch_each(body, count, OnDevice(device).place()));
#endif
  if (device.is_cpu()) return each(body, count);
  queue_loops(device, [body, count] { each(body, count); }, typeid(Body));
}

template <class Body>
void run_rows(const Body& body, const RowShape& shape, torch::Device device) {
  if (shape.rows == 0) return;
#if defined(POLYPHONY_KERNELS)
  if (device.is_cuda()) return check_launch(launch_rows(body, shape, OnDevice(device).place()));
#endif
  if (device.is_cpu()) return rows(body, shape);
  queue_loops(device, [body, shape] { rows(body, shape); }, typeid(Body));
}

}  // namespace polyphony::exec::kernels
