// Parcels between GPUs as one group of NCCL sends and receives, so that a communicator's messages
// have one order, and sums by LibTorch on the GPU, in group order. Internal to exec/network/nccl.cpp.
//   Not NCCL's own sums: their order depends on the machine, and bfloat16 is rounded at every step.
//   The bytes on the wire are a ring's; what is given up is NVLink SHARP's and trees' speed.
// Source: torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp (LibTorch 2.11).
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "exec/network/gloo_context.h"
#include "exec/network/peer_exchange.h"

namespace polyphony::exec {

class NcclExchange : public PeerExchange {
 public:
  // Collective over the group; `device` is this member's own GPU.
  NcclExchange(std::shared_ptr<GlooContext> context, const std::string& name, std::size_t index,
               std::size_t size, torch::Device device);
  ~NcclExchange() override;

  // Equal parts take NCCL's own all-gather.
  void all_gather(Element element, const std::byte* mine, std::byte* all,
                  const Parts& parts) override;

 private:
  void exchange(const std::vector<Parcel>& parcels, std::uint32_t kind) override;
  Limits limits() const override;
  std::byte* inbox(std::size_t bytes) override;
  void add(Element element, Reduction reduction, const std::vector<const std::byte*>& sources,
           std::byte* destination, std::size_t count) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  torch::Tensor tensor(const std::byte* data, std::size_t bytes,
                       torch::Dtype dtype = torch::kUInt8) const;
  void await(c10d::Work& work);

  std::shared_ptr<GlooContext> context_;
  torch::Device device_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group_;
  torch::Tensor inbox_;
};

}  // namespace polyphony::exec
