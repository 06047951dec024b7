// A group of processes: collectives over direct connections (exec/peer_links.h) where they pay,
// else over messages (exec/gloo_exchange.h). Internal to exec/gloo.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/gloo_context.h"
#include "exec/peer_exchange.h"

namespace polyphony::exec {

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(std::shared_ptr<GlooContext> context, std::string name,
                   std::vector<Rank> members, std::size_t index);

  int index() const override { return static_cast<int>(index_); }
  int size() const override { return static_cast<int>(members_.size()); }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override;
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override;
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override;
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override;

 private:
  // `bytes`: of the whole call, the same on all members, so that all go the same way.
  PeerExchange& way(std::size_t bytes);

  std::shared_ptr<GlooContext> context_;
  std::string name_;
  std::vector<Rank> members_;
  std::size_t index_;
  std::unique_ptr<PeerExchange> links_;     // of groups that are small enough
  std::unique_ptr<PeerExchange> messages_;  // none in a group of one
};

}  // namespace polyphony::exec
