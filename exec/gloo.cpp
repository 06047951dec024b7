#include "exec/gloo.h"

#include <algorithm>
#include <exception>

#include "exec/gloo_context.h"
#include "exec/mailbox.h"
#include "exec/process.h"
#include "exec/sockets.h"
#include "exec/store.h"
#include "exec/tensor_bytes.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(std::shared_ptr<GlooContext> context, std::string name,
                   const std::vector<Rank>& members, int index)
      : context_(std::move(context)),
        name_(std::move(name)),
        size_(static_cast<int>(members.size())),
        index_(index) {
    if (size_ == 1) return;
    if (size_ > context_->options.direct_ranks) return;
    links_ =
        connected(context_, [members, name = name_, position = index_](const GlooContext& shared) {
          return shared.make_links(name, members, position);
        });
  }

  ~GlooCommunicator() override {
    // Destroying it would wait for work that a lost peer keeps from ending.
    if (context_->liveness->lost()) static_cast<void>(group_.release());
  }

  int index() const override { return index_; }
  int size() const override { return size_; }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    std::byte* const data = bytes_of(tensor);
    const std::size_t bytes = tensor.nbytes();
    const Element element = element_of(tensor);
    if (size_ == 1 || bytes == 0) return;
    guarded(*context_, "all_reduce of group " + name_, [&] {
      if (links_ && Bytes(static_cast<std::int64_t>(bytes)) <= context_->options.direct_bytes) {
        links_->all_reduce(element, reduction, data, bytes);
        return;
      }
      // Made when first needed; members reach it in the same call.
      if (!group_) {
        group_ = connected(context_,
                           [name = name_, index = index_, size = size_](const GlooContext& shared) {
                             return shared.make_process_group(name, index, size);
                           });
      }
      c10d::AllreduceOptions call;
      call.reduceOp = reduction == Reduction::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
      call.timeout =
          std::chrono::duration_cast<std::chrono::milliseconds>(context_->options.timeout);
      std::vector<torch::Tensor> tensors{tensor};
      await_collective(*context_, group_->allreduce(tensors, call));
    });
  }

 private:
  std::shared_ptr<GlooContext> context_;
  std::string name_;
  int size_;
  int index_;
  std::unique_ptr<PeerLinks> links_;
  GlooGroup group_;
};

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
        return shared.make_process_group("world", static_cast<int>(shared.launch.rank.value),
                                         shared.launch.world_size);
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
      made = std::make_unique<GlooCommunicator>(context_, name, members,
                                                static_cast<int>(position - members.begin()));
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
    const Waiting waiting(*context_, works);
    for (std::size_t i = 0; i < works.size(); ++i) {
      bool arrived = false;
      try {
        // An abort before the registration would be missed.
        arrived = !context_->liveness->lost() && works[i]->wait();
      } catch (const std::exception& error) {
        throw LostPeer(peers[i], first_line(error));
      }
      if (!arrived) throw LostPeer(Rank(), "a message was aborted");
    }
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
