// Communication calls of the double of NCCL. Internal to tests/exec/nccl_double/.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing::nccl {

// Memory that a call reads or writes.
struct Buffer {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool written = false;
  queued::Life life = {};  // when the call was made

  bool overlaps(const Buffer& other) const {
    return data < other.data + other.bytes && other.data < data + bytes;
  }
};

enum class Kind : std::uint8_t { collective, send, receive };

struct Operation {
  std::string call;
  Kind kind = Kind::collective;
  ncclComm* communicator = nullptr;
  cudaStream_t stream = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0, read = 0, written = 0;  // elements: as given, at `from`, at `to`
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t reduction = ncclSum;
  int root = 0;  // of a message: the peer
  std::vector<Buffer> buffers = {};

  // Returns "ncclAllReduce of 4 float, sum": equal for all members of a collective.
  std::string words() const;
};

// Returns the size of an element; 0 if NCCL has no such type.
std::size_t size_of(ncclDataType_t type);

// With the library's lock held: fills `buffers`, and returns what is wrong with the call's
// arguments; empty if nothing is.
std::string wrong_arguments(Operation& operation);
// Returns which buffer of the operation its tensor has released since the call; empty if none.
std::string released(const Operation& operation);
// The same at the kernel's end, in the order of the streams.
std::string overwritten(const Operation& operation);

// Computes a collective of all members, in the order of their ranks.
void compute(const std::vector<const Operation*>& members);

}  // namespace polyphony::exec::testing::nccl
