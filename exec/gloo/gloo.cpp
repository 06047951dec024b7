#include "exec/gloo/gloo.h"

#include <algorithm>
#include <exception>

#include "exec/gloo/exchange_communicator.h"
#include "exec/gloo/gloo_context.h"
#include "exec/gloo/gloo_exchange.h"
#include "exec/system/process.h"
#include "exec/transport/mailbox.h"
#include "exec/transport/tensor_bytes.h"
#include "exec/wire/sockets.h"
#include "exec/wire/store.h"
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
    context.letters = another_connection(launch, options.join_timeout);
    context.own_address = options.interface.empty()
                              ? own_address_towards(launch.master_address, launch.master_port)
                              : address_of_interface(options.interface);
    context.liveness = std::make_unique<Liveness>(
        another_connection(launch, options.join_timeout), launch.rank, launch.world_size,
        launch.store_host(), options.liveness,
        [weak = std::weak_ptr<GlooContext>(context_)] {
          if (const auto shared = weak.lock()) shared->wake_all();
        },
        [&context] { context.look(); });
    guarded(context, "connecting", [&] {
      context.messages = connected(
          context_, [](const GlooContext& shared) { return shared.make_process_group(); });
    });
  }

  ~GlooTransport() override {
    if (std::uncaught_exceptions() > 0 && !context_->liveness->lost()) abort("an error");
    context_->liveness->finish();
  }

  Rank rank() const override { return context_->launch.rank; }
  int world_size() const override { return context_->launch.world_size; }

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    const auto position = std::find(members.begin(), members.end(), rank());
    POLYPHONY_CHECK(position != members.end(),
                    "rank " << rank().value << " is not in group " << name);
    const auto index = static_cast<std::size_t>(position - members.begin());
    ExchangeCommunicator::Ways ways;
    guarded(*context_, "joining group " + name, [&] {
      if (members.size() == 1) return;
      ways.messages = std::make_unique<GlooExchange>(context_, name, members, index);
      if (members.size() > static_cast<std::size_t>(context_->options.direct_ranks)) return;
      ways.links = connected(context_, [members, name, index](const GlooContext& shared) {
        return shared.make_links(name, members, index);
      });
    });
    return std::make_unique<ExchangeCommunicator>(context_, name, index, members.size(),
                                                  std::move(ways));
  }

  void exchange(const std::vector<Transfer>& transfers) override {
    const auto own = std::make_shared<Arrivals>();
    std::vector<Mailbox::Ticket> tickets;
    std::vector<Transfer> travelling;
    try {
      guarded(*context_, "a message", [&] {
        for (const Transfer& transfer : transfers)
          if (!post_to_self(transfer, own, tickets)) travelling.push_back(transfer);
        context_->move(travelling);
        const Waited waited =
            wait_all(*own, context_->spin, context_->liveness->lost(), context_->options.timeout);
        if (waited != Waited::done)
          throw LostPeer(Rank(), "a message to this rank itself did not arrive");
      });
    } catch (...) {
      for (const auto& ticket : tickets) self_.cancel(ticket);
      throw;
    }
  }

  void barrier() override {
    guarded(*context_, "barrier", [&] {
      await_collective(*context_, context_->messages->barrier(c10d::BarrierOptions()));
    });
  }

  void post(const std::string& key, const std::string& bytes) override {
    guarded(*context_, "posting " + key, [&] { set_text(*context_->letters, key, bytes); });
  }
  std::string fetch(const std::string& key) override {
    std::string bytes;
    guarded(*context_, "waiting for " + key, [&] {
      await_key(*context_, key);
      bytes = get_text(*context_->letters, key);
      context_->letters->deleteKey(key);
    });
    return bytes;
  }

  void abort(const std::string& reason) override {
    context_->liveness->report(
        reason.substr(0, reason.find('\n')));  // c10::Error appends a stack trace
  }
  std::shared_ptr<GlooContext> context() const { return context_; }

 private:
  // Returns true if the transfer is complete or waits in `tickets`; false if it goes to another
  // rank.
  bool post_to_self(const Transfer& transfer, const std::shared_ptr<Arrivals>& own,
                    std::vector<Mailbox::Ticket>& tickets) {
    check_tag(transfer, world_size());
    std::byte* const data = bytes_of(transfer.tensor);
    const std::size_t bytes = transfer.tensor.nbytes();
    if (bytes == 0) return true;
    if (transfer.peer != rank()) return false;
    if (transfer.sends) {
      self_.send(rank().value, transfer.tag, data, bytes, true, nullptr);
    } else {
      tickets.push_back(self_.receive(rank().value, transfer.tag, data, bytes, own));
    }
    return true;
  }

  std::shared_ptr<GlooContext> context_;
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
