// Base class of transports that wrap another one: every call that a wrapper does not override is
// forwarded to the inner transport.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/transport/announcing.h"

namespace polyphony::exec {

class ForwardingTransport : public Transport, public AnnouncingTransport {
 public:
  explicit ForwardingTransport(Transport& inner) : inner_(inner) {}
  explicit ForwardingTransport(std::unique_ptr<Transport> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  Rank rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    return inner_.make_group(name, members);
  }
  void announce(const std::vector<NamedGroup>& groups) override { exec::announce(inner_, groups); }
  void exchange(const std::vector<Transfer>& transfers) override { inner_.exchange(transfers); }
  void barrier() override { inner_.barrier(); }
  bool queues() const override { return inner_.queues(); }
  void prepare(const std::vector<Channel>& channels) override { inner_.prepare(channels); }
  void await(const c10::Event& event) override { inner_.await(event); }
  void watch(std::function<std::uint64_t()> place, std::function<std::string()> unended) override {
    inner_.watch(std::move(place), std::move(unended));
  }
  void post(const std::string& key, const std::string& bytes) override { inner_.post(key, bytes); }
  std::string fetch(const std::string& key) override { return inner_.fetch(key); }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 protected:
  Transport& inner() const { return inner_; }

 private:
  std::unique_ptr<Transport> owned_;  // may be null
  Transport& inner_;
};

}  // namespace polyphony::exec
