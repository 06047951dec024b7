#include "exec/network/gloo_context.h"

#include "exec/network/store.h"

namespace polyphony::exec {

namespace {

std::chrono::milliseconds milliseconds(Seconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

// Registers works for wake_all() while they are waited for.
class Waiting {
 public:
  Waiting(GlooContext& context, const std::vector<GlooWork>& works)
      : context_(context), works_(works) {
    const std::scoped_lock lock(context_.mutex);
    context_.works.insert(works_.begin(), works_.end());
  }
  ~Waiting() {
    const std::scoped_lock lock(context_.mutex);
    for (const GlooWork& work : works_) context_.works.erase(work);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  GlooContext& context_;
  const std::vector<GlooWork>& works_;
};

}  // namespace

// In slices: a store cannot be woken when a peer is lost meanwhile.
void await_key(const GlooContext& context, const std::string& key) {
  constexpr Seconds kSlice{0.5};
  const auto now = [] { return Seconds(std::chrono::steady_clock::now().time_since_epoch()); };
  for (const Seconds end = now() + context.options.timeout; now() < end;) {
    if (context.liveness->lost()) throw LostPeer(Rank(), "a peer is lost");
    const Seconds began = now();
    try {
      context.letters->wait({key}, milliseconds(kSlice));
      return;
    } catch (const std::exception&) {
      if (now() - began < 0.5 * kSlice) throw;  // no time-out: the connection is gone
    }
  }
  throw LostPeer(Rank(), "nobody posted it");
}

GlooContext::~GlooContext() {
  // Destroying it would wait for work that a lost peer keeps from ending.
  if (liveness && liveness->lost()) static_cast<void>(messages.release());
}

GlooGroup GlooContext::make_process_group() const {
  const auto prefix = c10::make_intrusive<c10d::PrefixStore>("gloo", store);
  const auto group_options = c10d::ProcessGroupGloo::Options::create(milliseconds(options.timeout));
  group_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_address));
  group_options->threads = 1;  // messages need none; barriers come one at a time
  return c10::make_intrusive<c10d::ProcessGroupGloo>(prefix, static_cast<int>(launch.rank.value),
                                                     launch.world_size, group_options);
}

std::unique_ptr<PeerLinks> GlooContext::make_links(const std::string& name,
                                                   const std::vector<Rank>& members,
                                                   std::size_t index) const {
  const auto prefix = c10::make_intrusive<c10d::PrefixStore>("links/" + name, store);
  const PeerLinks::Meeting meeting{
      .set = [prefix](const std::string& key,
                      const std::string& value) { set_text(*prefix, key, value); },
      .get = [prefix](const std::string& key) { return get_text(*prefix, key); },
      .own_address = own_address};
  return std::make_unique<PeerLinks>(members, index, meeting, spin, liveness->lost(),
                                     options.timeout);
}

void GlooContext::wake_all() {
  const std::scoped_lock lock(mutex);
  for (const GlooWork& work : works) work->abort();
}

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

void GlooContext::move(const std::vector<Transfer>& transfers) {
  std::vector<GlooWork> started;
  for (const Transfer& transfer : transfers) {
    std::vector<torch::Tensor> tensors{transfer.tensor};
    const int peer = static_cast<int>(transfer.peer.value);
    const int tag = static_cast<int>(transfer.tag);
    try {
      started.push_back(transfer.sends ? messages->send(tensors, peer, tag)
                                       : messages->recv(tensors, peer, tag));
    } catch (const std::exception& error) {
      throw LostPeer(transfer.peer, first_line(error));
    }
  }
  const Waiting waiting(*this, started);
  for (std::size_t i = 0; i < started.size(); ++i) {
    bool arrived = false;
    try {
      // An abort before the registration would be missed.
      arrived = !liveness->lost() && started[i]->wait();
    } catch (const std::exception& error) {
      throw LostPeer(transfers[i].peer, first_line(error));
    }
    if (!arrived) throw LostPeer(Rank(), "a message was aborted");
  }
}

void await_collective(const GlooContext& context, const GlooWork& work) {
  struct Done {
    std::atomic<std::uint32_t> word{0};
  };
  const auto done = std::make_shared<Done>();
  work->getFuture()->addCallback([done](c10::ivalue::Future&) {
    done->word.store(1, std::memory_order_release);
    futex_wake_all(done->word);
  });
  const Waited waited = wait_for_change(done->word, 0, context.spin, context.liveness->lost(),
                                        context.options.timeout);
  if (waited != Waited::done) throw LostPeer(Rank(), "not ended");
  work->wait();  // rethrows
}

}  // namespace polyphony::exec
