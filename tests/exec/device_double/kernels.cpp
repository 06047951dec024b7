// The operators of the queued device: LibTorch's CPU operators, queued on the current stream.
//   One function handles nearly all of them. Tensors that an operator writes in place exist
//   already; its outputs are allocated with the shapes that the meta device gives, and filled when
//   the operator runs. Views and memory operators are registered one by one.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/StreamGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <set>

#include "shared/error.h"
#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing {

torch::Tensor seen_by_kernels(const torch::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  const torch::Tensor seen = torch::from_blob(
      tensor.numel() == 0 ? nullptr : const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(),
      tensor.strides(), tensor.options().device(torch::kCPU).requires_grad(false));
  return seen;
}

}  // namespace polyphony::exec::testing

namespace polyphony::exec::testing::queued {

namespace {

using c10::IValue;
using torch::Tensor;
using Stack = torch::jit::Stack;

bool is_queued(const Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kQueued;
}

// Every tensor in a value, replaced.
template <class Change>
IValue changed(const IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

template <class Visit>
void each_tensor(const IValue& value, const Visit& visit) {
  changed(value, [&](const Tensor& tensor) {
    visit(tensor);
    return tensor;
  });
}

// As kernels get it. Numbers of the host's are as they are now.
Tensor argument(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (is_queued(tensor)) return seen_by_kernels(tensor);
  Tensor now = tensor.clone();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    now.unsafeGetTensorImpl()->set_wrapped_number(true);
  return now;
}

// Its shape alone.
Tensor shape_of(const Tensor& tensor) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(torch::kMeta).requires_grad(false));
}

// Any numbers of its shape.
Tensor stand_in(const Tensor& tensor) {
  if (!is_queued(tensor)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(torch::kCPU).requires_grad(false))
      .zero_();
}

Tensor like(const Tensor& shape, c10::DeviceIndex device) {
  if (!shape.defined()) return shape;
  return at::empty_strided(shape.sizes(), shape.strides(),
                           shape.options().device(c10::Device(kQueued, device)));
}

std::vector<IValue> called(const c10::OperatorHandle& op, std::vector<IValue> arguments) {
  Stack stack(std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  op.callBoxed(stack);
  return {stack.begin(), stack.end()};
}

// Results copied to where they have been promised. Of a kernel.
void deliver(const std::vector<IValue>& made, const std::vector<IValue>& promised) {
  for (std::size_t i = 0; i < made.size(); ++i) {
    std::vector<Tensor> from, to;
    each_tensor(made[i], [&](const Tensor& tensor) { from.push_back(tensor); });
    each_tensor(promised[i], [&](const Tensor& tensor) { to.push_back(tensor); });
    for (std::size_t t = 0; t < from.size(); ++t)
      if (from[t].defined()) to[t].copy_(from[t]);
  }
}

// Results given by the caller as empty tensors, which operators make as large as they need.
std::vector<std::size_t> empty_outs(const c10::FunctionSchema& schema,
                                    const std::vector<IValue>& arguments) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (!argument.kwarg_only() || !argument.alias_info() || !argument.alias_info()->isWrite())
      continue;
    bool empty = false;
    each_tensor(arguments[i], [&](const Tensor& tensor) { empty |= tensor.numel() == 0; });
    if (empty) found.push_back(i);
  }
  return found;
}

// What the operator returns, and writes to, for arguments of these shapes: on the meta device, or of any numbers
// where it has no kernel there.
std::vector<IValue> shapes_of(const c10::OperatorHandle& op, const std::vector<IValue>& arguments,
                              std::vector<IValue>& scratch) {
  const auto as = [&](torch::Device device, Tensor (*change)(const Tensor&)) {
    scratch.clear();
    for (const IValue& value : arguments)
      scratch.push_back(value.isDevice() ? IValue(device) : changed(value, change));
    return called(op, scratch);
  };
  try {
    return as(torch::kMeta, shape_of);
  } catch (const c10::NotImplementedError&) {
    return as(torch::kCPU, stand_in);
  } catch (const c10::IndexError&) {  // index_add looks at a first row there alone, of none, too
    return as(torch::kCPU, stand_in);
  }
}

void size_outs(const c10::OperatorHandle& op, const std::vector<IValue>& arguments,
               const std::vector<std::size_t>& outs) {
  std::vector<IValue> scratch;
  shapes_of(op, arguments, scratch);
  for (const std::size_t i : outs) {
    std::vector<Tensor> shapes, tensors;
    each_tensor(scratch[i], [&](const Tensor& tensor) { shapes.push_back(tensor); });
    each_tensor(arguments[i], [&](const Tensor& tensor) { tensors.push_back(tensor); });
    for (std::size_t t = 0; t < shapes.size(); ++t) tensors[t].resize_(shapes[t].sizes());
  }
}

// GPUs wait for these, too: the size of the result is a number on the device.
bool waits_on_gpus(const std::string& name) {
  static const std::set<std::string> names{
      "aten::nonzero", "aten::masked_select", "aten::_unique2",   "aten::unique_dim",
      "aten::equal",   "aten::bincount",      "aten::is_nonzero", "aten::repeat_interleave"};
  return names.contains(name);
}

void count_if_product(const std::string& name, const std::vector<IValue>& arguments,
                      c10::DeviceIndex device) {
  static const std::map<std::string, std::size_t> left{
      {"aten::mm", 0}, {"aten::addmm", 1}, {"aten::addmm_", 1}};
  if (name == "aten::bmm") {  // a batch of one matrix is one product
    const Tensor a = arguments[0].toTensor(), b = arguments[1].toTensor();
    if (b.stride(0) == 0)
      count_product(device, 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.size(2)));
    return;
  }
  const auto found = left.find(name);
  if (found == left.end()) return;
  const Tensor a = arguments[found->second].toTensor(), b = arguments[found->second + 1].toTensor();
  count_product(device, 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.size(1)));
}

// Over nothing GPUs launch nothing.
bool is_empty(const IValue& value) {
  bool empty = true;
  each_tensor(value,
              [&](const Tensor& tensor) { empty &= !tensor.defined() || tensor.numel() == 0; });
  return empty;
}
bool writes_nothing(const c10::FunctionSchema& schema, const std::vector<IValue>& arguments) {
  bool nothing = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    nothing &= !(alias && alias->isWrite()) || is_empty(arguments[i]);
  }
  return nothing;
}

// Without its library: "aten::mm" is "mm".
std::string plain_name(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  return name.substr(name.rfind(':') + 1);
}

void run(const c10::OperatorHandle& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::size_t count = schema.arguments().size();
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(count);
  std::vector<IValue> arguments(first, stack->end());
  stack->erase(first, stack->end());

  c10::DeviceIndex device = current_device();
  for (const IValue& value : arguments)
    each_tensor(value, [&](const Tensor& tensor) {
      if (is_queued(tensor)) device = tensor.device().index();
    });
  count_if_product(schema.name(), arguments, device);
  const c10::DeviceGuard guard(c10::Device(kQueued, device));
  const at::AutoDispatchBelowAutograd kernels_alone;
  std::vector<IValue> seen;
  for (const IValue& value : arguments)
    seen.push_back(value.isDevice() ? IValue(c10::Device(torch::kCPU)) : changed(value, argument));
  const auto host = c10::Device(kQueued, device);

  bool writes = false, makes = false;
  for (const c10::Argument& argument : schema.arguments())
    writes |= argument.alias_info() && argument.alias_info()->isWrite();
  for (const c10::Argument& result : schema.returns()) makes |= result.alias_info() == nullptr;

  if (!makes) {
    if (const std::vector<std::size_t> outs = empty_outs(schema, arguments); !outs.empty()) {
      size_outs(op, arguments, outs);
      for (const std::size_t i : outs) seen[i] = changed(arguments[i], argument);
    }
    POLYPHONY_CHECK(writes, "the queued device has no view " << schema.name());
    for (const c10::Argument& result : schema.returns())
      for (std::size_t i = 0; i < count; ++i)
        if (schema.arguments()[i].alias_info() &&
            *schema.arguments()[i].alias_info() == *result.alias_info())
          stack->push_back(arguments[i]);
    if (writes_nothing(schema, arguments)) return;
    queue_on_current(host, [op, seen] { called(op, seen); }, plain_name(schema));
    return;
  }
  if (waits_on_gpus(schema.name())) {
    count_wait(device, schema.name());
    await_stream(c10::Stream(c10::Stream::UNSAFE, host, current_stream(device)));
    const std::vector<IValue> made = called(op, seen);
    std::vector<IValue> filled;
    for (const IValue& value : made) {
      stack->push_back(changed(value, [&](const Tensor& tensor) { return like(tensor, device); }));
      filled.push_back(changed(stack->back(), seen_by_kernels));
    }
    queue_on_current(host, [made, filled] { deliver(made, filled); }, plain_name(schema));
    return;
  }
  std::vector<IValue> scratch;
  const std::vector<IValue> shapes = shapes_of(op, arguments, scratch);
  std::vector<IValue> promised;
  for (const IValue& shape : shapes) {
    const IValue made = changed(shape, [&](const Tensor& tensor) { return like(tensor, device); });
    promised.push_back(changed(made, seen_by_kernels));
    stack->push_back(made);
  }
  if (std::all_of(promised.begin(), promised.end(), is_empty)) return;
  queue_on_current(
      host, [op, seen, promised] { deliver(called(op, seen), promised); }, plain_name(schema));
}

c10::DispatchKeySet keys() { return c10::DispatchKeySet(c10::DispatchKey::POLYPHONY_QUEUED); }

Tensor empty(at::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
             std::optional<c10::Device> device, std::optional<bool>,
             std::optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(c10::Device(kQueued, current_device())));
  return at::detail::empty_generic(size, &allocator(), keys(), c10::dtype_or_default(dtype),
                                   format);
}
Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                     std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                     std::optional<c10::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device.value_or(c10::Device(kQueued, current_device())));
  return at::detail::empty_strided_generic(size, stride, &allocator(), keys(),
                                           c10::dtype_or_default(dtype));
}

const Tensor& resize(const Tensor& self, at::IntArrayRef size, std::optional<c10::MemoryFormat>) {
  const std::size_t bytes = at::detail::computeStorageNbytesContiguous(
      size, self.dtype().itemsize(), static_cast<std::size_t>(self.storage_offset()));
  if (bytes > self.storage().nbytes()) {
    POLYPHONY_CHECK(self.storage().nbytes() == 0,
                    "the queued device keeps nothing when it resizes");
    const c10::DeviceGuard guard(self.device());
    self.storage().set_data_ptr_noswap(allocator().allocate(bytes));
    self.storage().set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

Tensor& set(Tensor& self, at::Storage source, std::int64_t offset, at::IntArrayRef size,
            at::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  at::native::resize_impl_cpu_(self.unsafeGetTensorImpl(), size, stride, /*resize_storage=*/false);
  return self;
}

// From the host: memory that is pinned is read when the copy's turn comes, other memory before it is queued; unless
// it may run behind, and is pinned, the stream is waited for, as cudaMemcpyAsync may. To the host: likewise.
Tensor copy_from(const Tensor& source, const Tensor& to, bool behind) {
  if (source.numel() == 0) return to;
  const c10::Device where = is_queued(to) ? to.device() : source.device();
  const c10::DeviceGuard guard(where);
  const at::AutoDispatchBelowAutograd kernels_alone;
  const bool pinned = source.is_cpu() && is_pinned(source.const_data_ptr());
  const Tensor from = pinned ? source : argument(source), into = seen_by_kernels(to);
  const c10::Stream stream(c10::Stream::UNSAFE, where, current_stream(where.index()));
  queue_on_current(
      where, [from, into] { into.copy_(from); },
      !is_queued(to)       ? "copy to the host"
      : !is_queued(source) ? "copy to the device"
                           : "copy");
  if (is_queued(source) && is_queued(to)) return to;
  if (!behind || !(pinned || (to.is_cpu() && is_pinned(to.const_data_ptr())))) {
    count_wait(where.index(), is_queued(to) ? "copy to the device" : "copy to the host");
    await_stream(stream);
  }
  return to;
}

// LibTorch calls _copy_from for device types that its own copies do not know, which CUDA is not.
Tensor& copy(Tensor& to, const Tensor& source, bool behind) {
  if (!to.is_same(source)) copy_from(source, to, behind);
  return to;
}

c10::Scalar local_scalar(const Tensor& self) {
  const c10::Stream stream(c10::Stream::UNSAFE, self.device(),
                           current_stream(self.device().index()));
  count_wait(self.device().index(), "item");
  await_stream(stream);
  const at::AutoDispatchBelowAutograd kernels_alone;
  return seen_by_kernels(self).item();
}

void record_stream(Tensor& self, c10::Stream stream) { use_on(self.storage().data_ptr(), stream); }

TORCH_LIBRARY_IMPL(_, POLYPHONY_QUEUED, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run>());
}

TORCH_LIBRARY_IMPL(aten, POLYPHONY_QUEUED, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize);
  library.impl("set_.source_Storage_storage_offset", &set);
  library.impl("_copy_from", &copy_from);
  if (kQueued == c10::DeviceType::CUDA) library.impl("copy_", &copy);
  library.impl("_local_scalar_dense", &local_scalar);
  library.impl("record_stream", &record_stream);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  // One kernel, as on GPUs: without, LibTorch makes it of several.
  library.impl("native_layer_norm", torch::CppFunction::makeFromBoxedFunction<&run>());
}

}  // namespace

}  // namespace polyphony::exec::testing::queued
