#include "exec/network/nccl.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>

#include "exec/network/exchange_communicator.h"
#include "exec/network/nccl_exchange.h"
#include "exec/transport/staged.h"

namespace polyphony::exec {

namespace {

using Uuid = std::array<std::int64_t, 2>;

// CUDA tensors one way, CPU tensors the other.
class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> host, std::unique_ptr<Communicator> gpu)
      : host_(std::move(host)), gpu_(std::move(gpu)) {}

  int index() const override { return host_->index(); }
  int size() const override { return host_->size(); }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    way(tensor).all_reduce(tensor, reduction);
  }
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    way(all).all_gather(mine, all, counts);
  }
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    way(all).reduce_scatter(all, mine, counts);
  }
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override {
    way(send).all_to_all(send, receive, send_counts, receive_counts);
  }

 private:
  Communicator& way(const torch::Tensor& tensor) { return tensor.is_cpu() ? *host_ : *gpu_; }

  std::unique_ptr<Communicator> host_, gpu_;
};

class NcclTransport : public StagedTransport {
 public:
  NcclTransport(std::unique_ptr<Transport> gloo, torch::Device device)
      : StagedTransport(std::move(gloo)), device_(device) {}

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    auto on_host = host().make_group(name, members);
    const std::shared_ptr<GlooContext> context = context_of(host());
    const auto index = static_cast<std::size_t>(on_host->index());
    ExchangeCommunicator::Ways ways;
    if (members.size() > 1) {
      guarded(*context, "joining group " + name, [&] {
        ways.messages =
            std::make_unique<NcclExchange>(context, name, index, members.size(), device_);
      });
    }
    return std::make_unique<NcclCommunicator>(
        std::move(on_host),
        std::make_unique<ExchangeCommunicator>(context, name, torch::kCUDA, index, members.size(),
                                               std::move(ways)));
  }

 private:
  torch::Device device_;
};

// Zeros for a rank without a GPU. Numbers will not do: launchers may show each rank one GPU only.
Uuid uuid_of(torch::Device device) {
  Uuid uuid{};
  if (!device.is_cuda()) return uuid;
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(device.index());
  static_assert(sizeof(properties.uuid) == sizeof(uuid));
  std::memcpy(uuid.data(), &properties.uuid, sizeof(uuid));
  return uuid;
}

enum class Gpus : std::uint8_t { none, some, one_each };

Gpus gpus_of_all(Transport& gloo, torch::Device device) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < gloo.world_size(); ++rank)
    ranks.emplace_back(static_cast<std::size_t>(rank));
  const Uuid own = uuid_of(device);
  torch::Tensor mine = torch::empty({2}, torch::kInt64);
  std::memcpy(mine.data_ptr(), own.data(), sizeof(own));
  torch::Tensor all = torch::empty({2 * gloo.world_size()}, torch::kInt64);
  gloo.make_group("GPUs", ranks)->all_gather(mine, all, std::vector<std::int64_t>(ranks.size(), 2));
  std::vector<Uuid> uuids(ranks.size());
  std::memcpy(uuids.data(), all.const_data_ptr(), all.nbytes());
  std::sort(uuids.begin(), uuids.end());
  if (uuids.back() == Uuid{} && uuids.front() == Uuid{}) return Gpus::none;
  const bool twice = std::adjacent_find(uuids.begin(), uuids.end()) != uuids.end();
  const bool missing = std::find(uuids.begin(), uuids.end(), Uuid{}) != uuids.end();
  return twice || missing ? Gpus::some : Gpus::one_each;
}

}  // namespace

Bytes gpu_memory(torch::Device device) {
  return Bytes(
      static_cast<std::int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem));
}

std::unique_ptr<Transport> connect_nccl(std::unique_ptr<Transport> gloo, torch::Device device) {
  if (device.is_cuda()) c10::cuda::set_device(device.index());
  const Gpus gpus = gpus_of_all(*gloo, device);
  if (gpus == Gpus::none) return gloo;
  if (gpus == Gpus::one_each) return std::make_unique<NcclTransport>(std::move(gloo), device);
  if (gloo->rank() == Rank(0)) {
    std::cerr
        << "some ranks share a GPU or have none: what they exchange goes through host memory, over "
           "Gloo instead of NCCL"
        << std::endl;
  }
  return std::make_unique<StagedTransport>(std::move(gloo));
}

}  // namespace polyphony::exec
