#include "tests/exec/nccl_double/operation.h"

#include <array>

#include "exec/torch_pch.h"
#include "tests/exec/nccl_double/communicator.h"
#include "tests/exec/nccl_double/cuda.h"

namespace polyphony::exec::testing::nccl {

using torch::Tensor;

namespace {

struct Type {
  const char* name;
  std::size_t bytes;
  torch::Dtype dtype;
};

// The types whose sums this double computes, and bytes.
const Type* type_of(ncclDataType_t type) {
  static constexpr Type kBytes{"bytes", 1, torch::kUInt8}, kInt64{"int64", 8, torch::kInt64},
      kFloat32{"fp32", 4, torch::kFloat32}, kFloat64{"fp64", 8, torch::kFloat64},
      kBfloat16{"bf16", 2, torch::kBFloat16};
  if (type == ncclUint8) return &kBytes;
  if (type == ncclInt64) return &kInt64;
  if (type == ncclFloat32) return &kFloat32;
  if (type == ncclFloat64) return &kFloat64;
  if (type == ncclBfloat16) return &kBfloat16;
  return nullptr;
}

bool reduces(const Operation& operation) {
  return operation.call.find("Reduce") != std::string::npos;
}

// In-place operations: where `to` must be relative to `from` (NCCL user guide, "In-place
// Operations").
bool in_place(const Operation& operation) {
  const auto rank = static_cast<std::size_t>(operation.communicator->rank);
  const std::size_t part = rank * operation.count * size_of(operation.type);
  const auto *from = static_cast<const std::byte*>(operation.from),
             *to = static_cast<const std::byte*>(operation.to);
  if (operation.call == "ncclAllGather") return from == to + part;
  if (operation.call == "ncclReduceScatter") return to == from + part;
  return from == to;
}

Tensor seen(const void* data, std::size_t count, ncclDataType_t type) {
  return torch::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(count)},
                          type_of(type)->dtype);
}

// Sums begin with another rank for every size, as the chunks of a ring do; all members get the same
// bits.
Tensor reduced(const std::vector<const Operation*>& members) {
  const Operation& first = *members.front();
  Tensor total;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Operation& one = *members[(first.count + i) % members.size()];
    const Tensor part = seen(one.from, one.read, one.type);
    total = !total.defined()             ? part.clone()
            : first.reduction == ncclSum ? total.add_(part)
                                         : at::maximum(total, part);
  }
  return total;
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  const Type* known = type_of(type);
  return known != nullptr ? known->bytes : 0;
}

std::string Operation::words() const {
  std::string text = call + " of " + std::to_string(count) + " " + type_of(type)->name;
  if (reduces(*this)) text += reduction == ncclSum ? ", sum" : ", maximum";
  if (call == "ncclReduce" || call == "ncclBroadcast") text += ", root " + std::to_string(root);
  return text;
}

std::string wrong_arguments(Operation& operation) {
  const ncclComm& on = *operation.communicator;
  if (type_of(operation.type) == nullptr)
    return "type " + std::to_string(operation.type) + " is not in this double";
  if (reduces(operation) && operation.reduction != ncclSum && operation.reduction != ncclMax)
    return "reduction " + std::to_string(operation.reduction) + " is not in this double";
  if (operation.root < 0 || static_cast<std::size_t>(operation.root) >= on.clique->size())
    return "rank " + std::to_string(operation.root) + " of " + std::to_string(on.clique->size());
  if (operation.stream != nullptr) {
    if (!is_stream(operation.stream)) return "not a stream";
    if (operation.stream->device != on.device)
      return "a stream of device " + std::to_string(int{operation.stream->device}) + " on device " +
             std::to_string(int{on.device});
  }
  const std::size_t width = size_of(operation.type);
  operation.buffers = {
      {static_cast<const std::byte*>(operation.from), operation.read * width, false},
      {static_cast<const std::byte*>(operation.to), operation.written * width, true}};
  std::erase_if(operation.buffers, [](const Buffer& buffer) { return buffer.bytes == 0; });
  for (Buffer& buffer : operation.buffers) {
    const auto life = queued::life_of(on.device, buffer.data, buffer.bytes);
    if (!life)
      return "no tensor of device " + std::to_string(int{on.device}) + " holds the " +
             std::to_string(buffer.bytes) + " bytes that are " +
             (buffer.written ? "written" : "read");
    buffer.life = *life;
  }
  if (operation.buffers.size() == 2 && operation.buffers[0].overlaps(operation.buffers[1]) &&
      !in_place(operation))
    return "its buffers overlap, but not as an in-place operation's";
  return {};
}

std::string released(const Operation& operation) {
  for (const Buffer& buffer : operation.buffers) {
    const auto now = queued::life_of(operation.communicator->device, buffer.data, buffer.bytes);
    if (!now || now->block != buffer.life.block || now->allocated != buffer.life.allocated)
      return "the memory that is " + std::string(buffer.written ? "written" : "read") +
             " was released before the call was launched";
  }
  return {};
}

std::string overwritten(const Operation& operation) {
  for (const Buffer& buffer : operation.buffers)
    if (queued::overwritten(buffer.life))
      return "the memory that is " + std::string(buffer.written ? "written" : "read") +
             " was released before the kernel's end";
  return {};
}

void compute(const std::vector<const Operation*>& members) {
  const Operation& first = *members.front();
  const auto to = [](const Operation& one) { return seen(one.to, one.written, one.type); };
  const auto from = [](const Operation& one) { return seen(one.from, one.read, one.type); };
  if (first.call == "ncclBroadcast" || first.call == "ncclAllGather") {
    std::vector<Tensor> parts;
    for (const Operation* one : members)
      if (one->read > 0) parts.push_back(from(*one));
    const Tensor all = at::cat(parts);
    for (const Operation* one : members) to(*one).copy_(all);
    return;
  }
  const Tensor total = reduced(members);
  std::int64_t begin = 0;
  for (const Operation* one : members) {
    if (one->written == 0) continue;
    const auto count = static_cast<std::int64_t>(one->written);
    to(*one).copy_(total.narrow(0, begin, count));
    if (first.call == "ncclReduceScatter") begin += count;
  }
}

}  // namespace polyphony::exec::testing::nccl
