#include "exec/nccl.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <chrono>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "exec/gloo_context.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

using NcclGroup = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<GlooContext> context, std::unique_ptr<Communicator> host,
                   std::string name)
      : context_(std::move(context)), host_(std::move(host)), name_(std::move(name)) {
    if (size() == 1) return;
    const auto prefix = c10::make_intrusive<c10d::PrefixStore>("nccl/" + name_, context_->store);
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(context_->options.timeout);
    group_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(prefix, index(), size(), options);
  }

  ~NcclCommunicator() override {
    if (group_ && context_->liveness->lost()) group_->abort();
  }

  int index() const override { return host_->index(); }
  int size() const override { return host_->size(); }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    if (tensor.is_cpu()) return host_->all_reduce(tensor, reduction);
    POLYPHONY_CHECK(tensor.is_contiguous(), "all_reduce of group " << name_);
    if (size() == 1 || tensor.numel() == 0) return;
    guarded(*context_, "all_reduce of group " + name_, [&] {
      c10d::AllreduceOptions call;
      call.reduceOp = reduction == Reduction::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
      std::vector<torch::Tensor> tensors{tensor};
      await(*group_->allreduce(tensors, call));
    });
  }

 private:
  // wait() would only make the current stream wait. Waiting here lets a lost peer end it.
  void await(c10d::Work& work) {
    constexpr std::chrono::microseconds kLook{20};
    while (!work.isCompleted()) {
      if (context_->liveness->lost()) {
        group_->abort();
        throw LostPeer(Rank(), "not ended");
      }
      std::this_thread::sleep_for(kLook);
    }
    work.wait();  // rethrows
  }

  std::shared_ptr<GlooContext> context_;
  std::unique_ptr<Communicator> host_;
  std::string name_;
  NcclGroup group_;
};

class NcclTransport : public Transport {
 public:
  explicit NcclTransport(std::unique_ptr<Transport> host) : host_(std::move(host)) {}

  Rank rank() const override { return host_->rank(); }
  int world_size() const override { return host_->world_size(); }

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    return std::make_unique<NcclCommunicator>(context_of(*host_), host_->make_group(name, members),
                                              name);
  }

  void exchange(const std::vector<Transfer>& transfers) override {
    std::vector<Transfer> staged = transfers;
    for (Transfer& transfer : staged) {
      if (transfer.tensor.is_cpu()) continue;
      transfer.tensor = transfer.sends
                            ? transfer.tensor.cpu()
                            : torch::empty_like(transfer.tensor, torch::Device(torch::kCPU));
    }
    host_->exchange(staged);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const bool came = !transfers[i].sends && !transfers[i].tensor.is_cpu();
      if (came) transfers[i].tensor.copy_(staged[i].tensor);
    }
  }

  void barrier() override { host_->barrier(); }
  void abort(const std::string& reason) override { host_->abort(reason); }

 private:
  std::unique_ptr<Transport> host_;
};

}  // namespace

std::unique_ptr<Transport> connect_nccl(const LaunchEnv& launch, const GlooOptions& options) {
  const int devices = c10::cuda::device_count();
  if (launch.local_rank >= devices) {
    throw InputError("launch", "",
                     "local rank " + std::to_string(launch.local_rank) +
                         " has no GPU: " + std::to_string(devices) + " found",
                     "start at most one rank per GPU");
  }
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(launch.local_rank));
  return std::make_unique<NcclTransport>(connect_gloo(launch, options));
}

}  // namespace polyphony::exec
