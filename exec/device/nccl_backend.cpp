#include "exec/device/nccl_backend.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "exec/device/own_stream.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Element types of sums; data that is only moved is sent as bytes.
ncclDataType_t type_of(const Tensor& tensor) {
  const torch::Dtype type = tensor.scalar_type();
  if (type == torch::kFloat32) return ncclFloat32;
  if (type == torch::kFloat64) return ncclFloat64;
  if (type == torch::kBFloat16) return ncclBfloat16;
  POLYPHONY_CHECK(type == torch::kInt64, "sums over NCCL do not support the type " << type);
  return ncclInt64;
}

ncclRedOp_t operation(const c10d::ReduceOp& op) {
  POLYPHONY_CHECK(op == c10d::ReduceOp::SUM || op == c10d::ReduceOp::MAX,
                  "a reduction over NCCL must be a sum or a maximum");
  return op == c10d::ReduceOp::SUM ? ncclSum : ncclMax;
}

std::string in_words(ncclResult_t result, ncclComm_t communicator) {
  const char* last = ncclGetLastError(communicator);
  return ncclGetErrorString(result) +
         (last != nullptr && *last != '\0' ? std::string("; ") + last : "");
}

std::size_t numbers(const Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

class NcclWork : public c10d::Work {
 public:
  explicit NcclWork(const c10::cuda::CUDAStream& stream) : done_(torch::kCUDA) {
    done_.record(stream);
  }
  bool wait(std::chrono::milliseconds) override {
    done_.block(c10::cuda::getCurrentCUDAStream(done_.device_index()));
    return true;
  }

 private:
  c10::Event done_;
};

class NcclBackend : public GroupBackend {
 public:
  NcclBackend(ncclComm_t made, int index, int size, torch::Device device)
      : GroupBackend(index, size), made_(made), device_(device) {}
  ~NcclBackend() override { abort(); }
  const std::string getBackendName() const override { return "NCCL"; }

  using Handle = c10::intrusive_ptr<c10d::Work>;
  using Counts = std::vector<std::int64_t>;
  using Call = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;

  Handle allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const Tensor& all = tensors.at(0);
    return run("an all-reduce", options.asyncOp, {all}, [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(all.const_data_ptr(), all.data_ptr(), numbers(all), type_of(all),
                           operation(options.reduceOp), comm, stream);
    });
  }
  Handle _allgather_base(Tensor& output, Tensor& input,
                         const c10d::AllgatherOptions& options) override {
    POLYPHONY_CHECK(output.numel() == input.numel() * getSize(), "an all-gather of wrong sizes");
    return run("an all-gather", options.asyncOp, {output, input},
               [&](ncclComm_t comm, cudaStream_t stream) {
                 return ncclAllGather(input.const_data_ptr(), output.data_ptr(), input.nbytes(),
                                      ncclUint8, comm, stream);
               });
  }
  Handle _reduce_scatter_base(Tensor& output, Tensor& input,
                              const c10d::ReduceScatterOptions& options) override {
    POLYPHONY_CHECK(input.numel() == output.numel() * getSize(), "a reduce-scatter of wrong sizes");
    return run("a reduce-scatter", options.asyncOp, {output, input},
               [&](ncclComm_t comm, cudaStream_t stream) {
                 return ncclReduceScatter(input.const_data_ptr(), output.data_ptr(),
                                          numbers(output), type_of(output),
                                          operation(options.reduceOp), comm, stream);
               });
  }
  Handle alltoall_base(Tensor& output, Tensor& input, Counts& received, Counts& sent,
                       const c10d::AllToAllOptions& options) override {
    const auto members = static_cast<std::size_t>(getSize());
    POLYPHONY_CHECK(received.size() == members && sent.size() == members,
                    "an all-to-all needs one count for each member");
    const std::size_t width = input.element_size();
    const std::vector<Call> calls = [&] {
      std::vector<Call> list;
      auto* to = static_cast<std::byte*>(output.data_ptr());
      const auto* from = static_cast<const std::byte*>(input.const_data_ptr());
      for (std::size_t peer = 0; peer < members; ++peer) {
        const std::size_t out = static_cast<std::size_t>(sent[peer]) * width,
                          in = static_cast<std::size_t>(received[peer]) * width;
        if (out > 0)
          list.emplace_back([=, at = from](ncclComm_t comm, cudaStream_t stream) {
            return ncclSend(at, out, ncclUint8, static_cast<int>(peer), comm, stream);
          });
        if (in > 0)
          list.emplace_back([=, at = to](ncclComm_t comm, cudaStream_t stream) {
            return ncclRecv(at, in, ncclUint8, static_cast<int>(peer), comm, stream);
          });
        from += out;
        to += in;
      }
      return list;
    }();
    return run("an all-to-all", options.asyncOp, {output, input}, grouped(calls));
  }
  Handle reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) override {
    const Tensor part = tensors.at(0);
    const auto root = static_cast<int>(options.rootRank);
    add(part, [part, root, op = operation(options.reduceOp)](ncclComm_t comm, cudaStream_t stream) {
      return ncclReduce(part.const_data_ptr(), part.data_ptr(), numbers(part), type_of(part), op,
                        root, comm, stream);
    });
    return {};
  }
  Handle send(std::vector<Tensor>& tensors, int to, int) override {
    const Tensor tensor = tensors.at(0);
    add(tensor, [tensor, to](ncclComm_t comm, cudaStream_t stream) {
      return ncclSend(tensor.const_data_ptr(), tensor.nbytes(), ncclUint8, to, comm, stream);
    });
    return {};
  }
  Handle recv(std::vector<Tensor>& tensors, int from, int) override {
    const Tensor tensor = tensors.at(0);
    add(tensor, [tensor, from](ncclComm_t comm, cudaStream_t stream) {
      return ncclRecv(tensor.data_ptr(), tensor.nbytes(), ncclUint8, from, comm, stream);
    });
    return {};
  }
  void begin_messages(bool apart) override {
    coalesces_ = true;
    apart_ = apart;
  }
  Handle endCoalescing() override {
    coalesces_ = false;
    const std::vector<Call> calls = std::exchange(calls_, {});
    const std::vector<Tensor> tensors = std::exchange(tensors_, {});
    if (calls.empty()) return {};
    return run("several messages at once", apart_, tensors, grouped(calls));
  }
  // May be called from any thread. Ends the group's operations on the device, and calls of other
  // threads that wait in the group.
  void abort() override {
    ncclComm_t made = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      made = std::exchange(made_, nullptr);
    }
    if (made == nullptr) return;
    const c10::cuda::CUDAGuard on(device_);
    static_cast<void>(ncclCommAbort(made));
  }

  // NCCL makes two atomic loads (src/init.cc); the mutex keeps abort() from freeing the
  // communicator meanwhile.
  std::string own_error() override {
    const std::scoped_lock lock(mutex_);
    if (made_ == nullptr) return {};
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(made_, &state);
    if (asked != ncclSuccess) state = asked;
    return state == ncclSuccess || state == ncclInProgress ? std::string()
                                                           : "NCCL: " + in_words(state, made_);
  }

 private:
  void add(const Tensor& tensor, Call call) {
    POLYPHONY_CHECK(coalesces_, "send, recv and reduce need begin_messages() before them");
    tensors_.push_back(tensor);
    calls_.push_back(std::move(call));
  }
  static Call grouped(const std::vector<Call>& calls) {
    return [calls](ncclComm_t comm, cudaStream_t stream) {
      ncclResult_t first = ncclGroupStart();
      for (const Call& call : calls)
        if (const ncclResult_t result = call(comm, stream); first == ncclSuccess) first = result;
      const ncclResult_t end = ncclGroupEnd();
      return first == ncclSuccess ? end : first;
    };
  }
  Handle run(const std::string& what, bool apart, const std::vector<Tensor>& tensors,
             const Call& call) {
    const c10::cuda::CUDAGuard on(device_);
    const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device_.index());
    if (apart && !stream_) stream_.emplace(device_, Priority::urgent);
    const c10::cuda::CUDAStream stream = apart ? c10::cuda::CUDAStream(stream_->get()) : current;
    if (apart) {
      c10::Event before(torch::kCUDA);
      before.record(current);
      before.block(stream);
      for (const Tensor& tensor : tensors) tensor.record_stream(stream);
    }
    ncclComm_t comm = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      comm = made_;
    }
    if (comm == nullptr) throw std::runtime_error(what + " of a group that was aborted");
    check_nccl(call(comm, stream.stream()), what, comm);
    return apart ? Handle(c10::make_intrusive<NcclWork>(stream)) : Handle();
  }

  std::mutex mutex_;
  ncclComm_t made_;  // protected by the mutex; null once aborted
  torch::Device device_;
  std::optional<OwnStream> stream_;  // once a call runs beside other work
  bool coalesces_ = false, apart_ = false;
  std::vector<Call> calls_;
  std::vector<Tensor> tensors_;
};

}  // namespace

DeviceBackend nccl_backend(ncclComm_t made, int index, int size, torch::Device device) {
  return c10::make_intrusive<NcclBackend>(made, index, size, device);
}

void check_nccl(ncclResult_t result, const std::string& what, ncclComm_t communicator) {
  if (result == ncclSuccess) return;
  throw std::runtime_error("NCCL, " + what + ": " + in_words(result, communicator));
}

}  // namespace polyphony::exec
