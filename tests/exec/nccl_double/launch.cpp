// Groups of calls in the double of NCCL: what ncclGroupEnd() checks, connects and queues.
#include <algorithm>

#include "tests/exec/nccl_double/communicator.h"
#include "tests/exec/nccl_double/cuda.h"

namespace polyphony::exec::testing::nccl {

namespace {

// The calls of this thread since ncclGroupStart().
struct Group {
  int depth = 0;
  std::vector<Operation> operations;
  ncclResult_t error = ncclSuccess;
};
thread_local Group group;

// The calls of one communicator in a group, in their order.
struct Batch {
  ncclComm* on;
  std::vector<Operation> operations;

  bool has(Kind kind) const {
    return std::any_of(operations.begin(), operations.end(),
                       [&](const Operation& one) { return one.kind == kind; });
  }
};

std::vector<Batch> batches(std::vector<Operation> operations) {
  std::vector<Batch> all;
  for (Operation& operation : operations) {
    auto found = std::find_if(all.begin(), all.end(), [&](const Batch& batch) {
      return batch.on == operation.communicator;
    });
    if (found == all.end()) found = all.insert(all.end(), Batch{operation.communicator, {}});
    found->operations.push_back(std::move(operation));
  }
  return all;
}

// A message to the rank itself needs both ends in one group. Nothing may be written that another
// call of the group reads or writes, because they run together.
std::string wrong_batch(const Batch& batch) {
  int own = 0;
  for (const Operation& one : batch.operations) {
    if (one.stream != batch.operations.front().stream) return "two streams: not in this double";
    if (const std::string gone = released(one); !gone.empty()) return gone;
    if (one.kind != Kind::collective && one.root == batch.on->rank)
      own += one.kind == Kind::send ? 1 : -1;
    for (const Operation& other : batch.operations)
      for (const Buffer& written : one.buffers)
        for (const Buffer& buffer : other.buffers)
          if (&one != &other && written.written && written.overlaps(buffer))
            return "it writes where another call of the group does, or reads";
  }
  if (own != 0) return "a message to itself has one end in the group";
  return {};
}

// Comes to connect, and returns what must come from the other members.
std::vector<std::tuple<int, int, bool>> come(Batch& batch) {
  std::vector<std::tuple<int, int, bool>> others;
  for (const Operation& one : batch.operations) {
    if (one.kind == Kind::collective) continue;
    const bool sends = one.kind == Kind::send;
    const int from = sends ? batch.on->rank : one.root, to = sends ? one.root : batch.on->rank;
    batch.on->clique->ends.insert({from, to, sends});
    others.emplace_back(from, to, !sends);
  }
  return others;
}

ncclResult_t not_connected(const Batch& batch, const std::string& absent, bool late) {
  const std::string call = batch.operations.front().call;
  return late ? mistaken(ncclSystemError, call, batch.on, absent)
              : failed(ncclInternalError, call + " on " + batch.on->name() + ": aborted");
}

// The host waits where NCCL connects members: once for all messages of the group of calls, then for
// the collectives of one communicator after another (groupLaunch() in NCCL's src/group.cc).
ncclResult_t connect(Lock& lock, std::vector<Batch>& all) {
  bool late = false;
  std::vector<std::vector<std::tuple<int, int, bool>>> others;
  for (Batch& batch : all) others.push_back(come(batch));
  library().changed.notify_all();
  for (std::size_t b = 0; b < all.size(); ++b)
    for (const auto& end : others[b])
      if (!wait(lock, *all[b].on, [&] { return all[b].on->clique->ends.contains(end); }, late))
        return not_connected(all[b],
                             "the first message from " + std::to_string(std::get<0>(end)) + " to " +
                                 std::to_string(std::get<1>(end)) + " has one end",
                             late);
  for (Batch& batch : all) {
    Clique& clique = *batch.on->clique;
    for (const Operation& one : batch.operations) {
      if (one.kind != Kind::collective) continue;
      std::set<int>& came = clique.kinds[one.call];
      came.insert(batch.on->rank);
      library().changed.notify_all();
      if (!wait(lock, *batch.on, [&] { return came.size() == clique.size(); }, late))
        return not_connected(
            batch, "the first " + one.call + " is without " + clique.ranks([&](std::size_t rank) {
              return !came.contains(static_cast<int>(rank));
            }),
            late);
    }
  }
  return ncclSuccess;
}

void queue_kernel(const Batch& batch, std::function<void()> work) {
  ncclComm& on = *batch.on;
  ++on.kernels;
  const cudaStream_t stream = batch.operations.front().stream;
  const c10::Device device(queued::kQueued, on.device);
  queued::count_kernel(on.device, batch.operations.front().call);
  queued::queue(device, stream != nullptr ? stream->id : 0)
      .push(
          [&on, work = std::move(work)] {
            const auto leave = [&on] {
              const std::scoped_lock lock(library().mutex);
              --on.kernels;
              library().changed.notify_all();
            };
            try {
              work();
            } catch (...) {
              leave();
              throw;
            }
            leave();
          },
          true);
}

// A kernel for each collective, in their order; then one for all messages.
void queue_kernels(const Batch& batch) {
  std::vector<std::pair<Operation, std::int64_t>> messages;
  for (const Operation& one : batch.operations) {
    if (one.kind == Kind::collective) {
      const std::int64_t number = batch.on->collectives++;
      queue_kernel(batch, [one, number] { run_collective(one, number); });
    } else {
      messages.emplace_back(one, batch.on->messages[{one.root, one.kind == Kind::send}]++);
    }
  }
  if (!messages.empty()) queue_kernel(batch, [messages] { run_messages(messages); });
}

ncclResult_t launch(std::vector<Operation> operations) {
  Lock lock(library().mutex);
  std::vector<Batch> all = batches(std::move(operations));
  for (const Batch& batch : all) {
    const std::string call = batch.operations.front().call;
    if (const ncclResult_t ready = check_ready(call, batch.on); ready != ncclSuccess) return ready;
    if (const std::string wrong = wrong_batch(batch); !wrong.empty())
      return mistaken(ncclInvalidUsage, call, batch.on, wrong);
  }
  const auto enter = [&](int by) {
    for (const Batch& batch : all) {
      batch.on->calls += by;
      batch.on->thread = std::this_thread::get_id();
    }
  };
  enter(1);
  const ncclResult_t connected = connect(lock, all);
  enter(-1);
  if (connected != ncclSuccess) return connected;
  try {
    for (const Batch& batch : all) queued::throw_failure(batch.on->device);
  } catch (const std::exception& error) {
    return failed(ncclUnhandledCudaError, error.what());
  }
  for (const Batch& batch : all) queue_kernels(batch);
  return ncclSuccess;
}

// One communication call. An error in a group also fails the group.
ncclResult_t call(Operation operation) {
  const auto in_group_too = [](ncclResult_t result) {
    if (group.depth > 0 && group.error == ncclSuccess) group.error = result;
    return result;
  };
  {
    const std::scoped_lock lock(library().mutex);
    ncclComm* const on = operation.communicator;
    if (const ncclResult_t ready = check_ready(operation.call, on); ready != ncclSuccess)
      return in_group_too(ready);
    for (const Operation& other : group.operations)
      if (other.communicator->blocking != on->blocking)
        return in_group_too(mistaken(ncclInvalidArgument, operation.call, on,
                                     "blocking and non-blocking communicators in one group"));
    if (const std::string wrong = wrong_arguments(operation); !wrong.empty())
      return in_group_too(mistaken(ncclInvalidArgument, operation.call, on, wrong));
  }
  if (operation.count == 0 && operation.kind == Kind::collective) return ncclSuccess;
  if (group.depth == 0 && !operation.communicator->blocking) {
    const std::scoped_lock lock(library().mutex);
    return mistaken(ncclInvalidUsage, operation.call, operation.communicator,
                    "communication on a non-blocking communicator: not in this double");
  }
  if (group.depth == 0) return launch({std::move(operation)});
  group.operations.push_back(std::move(operation));
  return ncclSuccess;
}

}  // namespace

bool in_group() { return group.depth > 0; }

}  // namespace polyphony::exec::testing::nccl

using namespace polyphony::exec::testing::nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) {
    const std::scoped_lock lock(library().mutex);
    return mistaken(ncclInvalidUsage, "ncclGroupEnd", nullptr, "not in a group");
  }
  if (--group.depth > 0) return ncclSuccess;
  std::vector<Operation> operations = std::exchange(group.operations, {});
  if (const ncclResult_t error = std::exchange(group.error, ncclSuccess); error != ncclSuccess)
    return error;
  return operations.empty() ? ncclSuccess : launch(std::move(operations));
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t on, cudaStream_t stream) {
  return call({"ncclAllReduce", Kind::collective, on, stream, from, to, count, count, count, type,
               reduction});
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t on, cudaStream_t stream) {
  const std::size_t size = on != nullptr ? on->clique->size() : 0;
  return call(
      {"ncclAllGather", Kind::collective, on, stream, from, to, count, count, size * count, type});
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t on, cudaStream_t stream) {
  const std::size_t size = on != nullptr ? on->clique->size() : 0;
  return call({"ncclReduceScatter", Kind::collective, on, stream, from, to, count, size * count,
               count, type, reduction});
}

// Only the root writes; the other members' `to` may be anything.
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t reduction, int root, ncclComm_t on, cudaStream_t stream) {
  const bool writes = on != nullptr && on->rank == root;
  return call({"ncclReduce", Kind::collective, on, stream, from, to, count, count,
               writes ? count : 0, type, reduction, root});
}

// Only the root reads.
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t on, cudaStream_t stream) {
  const bool reads = on != nullptr && on->rank == root;
  return call({"ncclBroadcast", Kind::collective, on, stream, from, to, count, reads ? count : 0,
               count, type, ncclSum, root});
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t on,
                      cudaStream_t stream) {
  return call(
      {"ncclSend", Kind::send, on, stream, from, nullptr, count, count, 0, type, ncclSum, peer});
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t on,
                      cudaStream_t stream) {
  return call(
      {"ncclRecv", Kind::receive, on, stream, nullptr, to, count, 0, count, type, ncclSum, peer});
}

}  // extern "C"
