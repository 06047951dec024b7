#include "exec/runner/host_tape.h"

#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "exec/on_device.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

thread_local TapeWatch* watch = nullptr;

// Inputs of nested ops are ignored: an op may pass a tensor that it has just allocated to another
// op.
std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& call) {
  if (watch && watch->depth++ == 0)
    for (const c10::IValue& value : call.inputs()) watch->seen(value, false);
  return nullptr;
}
void on_end(const at::RecordFunction& call, at::ObserverContext*) {
  if (!watch) return;
  --watch->depth;
  for (const c10::IValue& value : call.outputs()) watch->seen(value, true);
}

torch::Tensor bytes_of(const c10::Storage& storage) {
  const auto size = static_cast<std::int64_t>(storage.nbytes());
  return torch::empty({0}, torch::dtype(torch::kUInt8).device(storage.device()))
      .set_(storage, 0, {size}, {1});
}

}  // namespace

void HostTape::Free::operator()(void* data) const { std::free(data); }

std::size_t HostTape::bytes() const {
  std::size_t sum = 0;
  for (const c10::Storage& storage : storages_) sum += storage.nbytes();
  return sum;
}

void HostTape::to_host() {
  POLYPHONY_CHECK(here_.empty() && pinned_.empty(), "saved activations are offloaded twice");
  const torch::NoGradGuard no_grad;
  for (const c10::Storage& storage : storages_) {
    if (!storage.device().is_cpu()) {
      const c10::impl::VirtualGuardImpl device(storage.device_type());
      device.recordDataPtrOnStream(storage.data_ptr(), current_stream(storage.device()));
      pinned_.push_back(torch::empty({static_cast<std::int64_t>(storage.nbytes())},
                                     torch::dtype(torch::kUInt8).pinned_memory(true)));
      pinned_.back().copy_(bytes_of(storage), /*non_blocking=*/true);
      continue;
    }
    here_.emplace_back(static_cast<std::byte*>(std::malloc(storage.nbytes())));
    if (!here_.back()) throw std::bad_alloc();
    std::memcpy(here_.back().get(), storage.data(), storage.nbytes());
  }
  for (const c10::Storage& storage : storages_)
    storage.set_data_ptr_noswap(c10::DataPtr(nullptr, storage.device()));
}

void HostTape::to_device() {
  POLYPHONY_CHECK(here_.size() + pinned_.size() == storages_.size(),
                  "saved activations are restored that were never offloaded");
  const torch::NoGradGuard no_grad;
  for (std::size_t s = 0; s < storages_.size(); ++s) {
    const c10::Storage& storage = storages_[s];
    c10::Allocator* own = storage.allocator();
    if (own == nullptr) own = c10::GetAllocator(storage.device_type());
    storage.set_data_ptr_noswap(own->allocate(storage.nbytes()));
    if (storage.device().is_cpu()) {
      std::memcpy(storage.mutable_data(), here_[s].get(), storage.nbytes());
      continue;
    }
    // Allocated on the stream of the copies, but released by the compute stream.
    const c10::impl::VirtualGuardImpl device(storage.device_type());
    device.recordDataPtrOnStream(storage.data_ptr(), default_stream(storage.device()));
    bytes_of(storage).copy_(pinned_[s], /*non_blocking=*/true);
  }
  *this = {};  // the graph owns the storages now
}

TapeWatch::TapeWatch(c10::DeviceType type) : type_(type) {
  POLYPHONY_CHECK(watch == nullptr, "two forward passes of one thread are observed at once");
  watch = this;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&on_start, &on_end).needsInputs(true).needsOutputs(true));
}
TapeWatch::~TapeWatch() { stop(); }

void TapeWatch::stop() {
  if (!std::exchange(watching_, false)) return;
  at::removeCallback(handle_);
  watch = nullptr;
}

void TapeWatch::seen(const c10::IValue& value, bool made) {
  if (value.isList()) {
    for (const c10::IValue& one : value.toListRef()) seen(one, made);
    return;
  }
  if (!value.isTensor()) return;
  const torch::Tensor& tensor = value.toTensor();
  if (!tensor.defined() || !tensor.has_storage() || tensor.device().type() != type_) return;
  const c10::Storage& storage = tensor.storage();
  const c10::StorageImpl* const key = storage.unsafeGetStorageImpl();
  const bool fresh = found_.try_emplace(key, storage.getWeakStorageImpl()).second;
  if (fresh && made) made_.push_back(key);
}

HostTape TapeWatch::tape(const torch::Tensor& returned) {
  stop();
  const c10::StorageImpl* const out =
      returned.defined() ? returned.storage().unsafeGetStorageImpl() : nullptr;
  std::vector<c10::Storage> kept;
  for (const c10::StorageImpl* key : made_) {
    auto storage = found_.at(key).lock();
    if (!storage || storage.get() == out || storage->nbytes() == 0) continue;
    kept.emplace_back(std::move(storage));
  }
  found_.clear();
  return HostTape(std::move(kept));
}

}  // namespace polyphony::exec
