// The collectives of a group of a Gloo transport. Each call checks its arguments, chooses between
// direct connections and messages, runs the collective of exec/wire/peer_exchange.h, and reports
// which member is lost if one is. Internal to exec/gloo/gloo.cpp.
#pragma once

#include <memory>
#include <string>

#include "exec/gloo/gloo_context.h"
#include "exec/wire/peer_exchange.h"

namespace polyphony::exec {

class ExchangeCommunicator : public Communicator {
 public:
  struct Ways {
    std::unique_ptr<PeerExchange> links;     // direct connections, for few bytes; may be null
    std::unique_ptr<PeerExchange> messages;  // null in a group of one
  };
  ExchangeCommunicator(std::shared_ptr<GlooContext> context, std::string name, std::size_t index,
                       std::size_t size, Ways ways)
      : context_(std::move(context)),
        name_(std::move(name)),
        index_(index),
        size_(size),
        ways_(std::move(ways)) {}

  int index() const override { return static_cast<int>(index_); }
  int size() const override { return static_cast<int>(size_); }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override;
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override;
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override;
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override;

 private:
  std::byte* memory(const torch::Tensor& tensor) const;
  // Returns the exchange to use. `bytes` are those of the whole call: the same on all members, so
  // that all members choose the same.
  PeerExchange& way(std::size_t bytes);
  // The collective of a group of one rank: a copy.
  void copy_alone(const torch::Tensor& from, torch::Tensor& to) const;

  std::shared_ptr<GlooContext> context_;
  std::string name_;
  std::size_t index_, size_;
  Ways ways_;
};

}  // namespace polyphony::exec
