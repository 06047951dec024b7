#include "exec/gloo.h"

#include <algorithm>
#include <exception>

#include "exec/gloo_communicator.h"
#include "exec/gloo_context.h"
#include "exec/mailbox.h"
#include "exec/process.h"
#include "exec/sockets.h"
#include "exec/store.h"
#include "exec/tensor_bytes.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

class GlooTransport : public Transport {
 public:
  GlooTransport(const LaunchEnv& launch, const GlooOptions& options)
      : context_(std::make_shared<GlooContext>()) {
    GlooContext& context = *context_;
    context.launch = launch;
    context.options = options;
    context.spin = cores_suffice(launch.local_world_size);
    context.store = meet_at_store(launch, options.join_timeout);
    context.own_address = options.interface.empty()
                              ? own_address_towards(launch.master_address, launch.master_port)
                              : address_of_interface(options.interface);
    context.liveness = std::make_unique<Liveness>(
        another_connection(launch, options.join_timeout), launch.rank, launch.world_size,
        launch.store_host(), options.liveness, [weak = std::weak_ptr<GlooContext>(context_)] {
          if (const auto shared = weak.lock()) shared->wake_all();
        });
    guarded(context, "connecting", [&] {
      messages_ = connected(context_, [](const GlooContext& shared) {
        return shared.make_process_group("world", shared.launch.rank.value,
                                         static_cast<std::size_t>(shared.launch.world_size));
      });
    });
  }

  ~GlooTransport() override {
    if (std::uncaught_exceptions() > 0 && !context_->liveness->lost()) abort("an error");
    context_->liveness->finish();
    if (context_->liveness->lost()) static_cast<void>(messages_.release());
  }

  Rank rank() const override { return context_->launch.rank; }
  int world_size() const override { return context_->launch.world_size; }

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    const auto position = std::find(members.begin(), members.end(), rank());
    POLYPHONY_CHECK(position != members.end(),
                    "rank " << rank().value << " is not in group " << name);
    std::unique_ptr<Communicator> made;
    guarded(*context_, "joining group " + name, [&] {
      made = std::make_unique<GlooCommunicator>(
          context_, name, members, static_cast<std::size_t>(position - members.begin()));
    });
    return made;
  }

  void exchange(const std::vector<Transfer>& transfers) override {
    const auto own = std::make_shared<Arrivals>();
    std::vector<Mailbox::Ticket> tickets;
    std::vector<GlooWork> works;
    std::vector<Rank> peers;
    try {
      guarded(*context_, "a message", [&] {
        for (const Transfer& transfer : transfers) {
          if (!post_to_self(transfer, own, tickets)) continue;
          works.push_back(post(transfer));
          peers.push_back(transfer.peer);
        }
        await(works, peers, *own);
      });
    } catch (...) {
      for (const auto& ticket : tickets) self_.cancel(ticket);
      throw;
    }
  }

  void barrier() override {
    guarded(*context_, "barrier",
            [&] { await_collective(*context_, messages_->barrier(c10d::BarrierOptions())); });
  }

  void abort(const std::string& reason) override { context_->liveness->report(reason); }
  std::shared_ptr<GlooContext> context() const { return context_; }

 private:
  // False when the transfer is complete or waits in `tickets`; true when it has to travel.
  bool post_to_self(const Transfer& transfer, const std::shared_ptr<Arrivals>& own,
                    std::vector<Mailbox::Ticket>& tickets) {
    check_tag(transfer, world_size());
    std::byte* const data = bytes_of(transfer.tensor);
    const std::size_t bytes = transfer.tensor.nbytes();
    if (bytes == 0) return false;
    if (transfer.peer != rank()) return true;
    if (transfer.sends) {
      self_.send(rank().value, transfer.tag, data, bytes, true, nullptr);
    } else {
      tickets.push_back(self_.receive(rank().value, transfer.tag, data, bytes, own));
    }
    return false;
  }

  GlooWork post(const Transfer& transfer) {
    std::vector<torch::Tensor> tensors{transfer.tensor};
    const int peer = static_cast<int>(transfer.peer.value);
    const int tag = static_cast<int>(transfer.tag);
    try {
      return transfer.sends ? messages_->send(tensors, peer, tag)
                            : messages_->recv(tensors, peer, tag);
    } catch (const std::exception& error) {
      throw LostPeer(transfer.peer, first_line(error));
    }
  }

  void await(const std::vector<GlooWork>& works, const std::vector<Rank>& peers, Arrivals& own) {
    await_messages(*context_, works, peers);
    const Waited waited =
        wait_all(own, context_->spin, context_->liveness->lost(), context_->options.timeout);
    if (waited != Waited::done)
      throw LostPeer(Rank(), "a message to this rank itself did not arrive");
  }

  std::shared_ptr<GlooContext> context_;
  GlooGroup messages_;
  Mailbox self_;
};

}  // namespace

std::shared_ptr<GlooContext> context_of(Transport& transport) {
  auto* const gloo = dynamic_cast<GlooTransport*>(&transport);
  POLYPHONY_CHECK(gloo != nullptr, "not a Gloo transport");
  return gloo->context();
}

std::unique_ptr<Transport> connect_gloo(const LaunchEnv& launch, const GlooOptions& options) {
  quieten_libtorch();
  return std::make_unique<GlooTransport>(launch, options);
}

}  // namespace polyphony::exec
