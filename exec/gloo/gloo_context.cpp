#include "exec/gloo/gloo_context.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/system/process.h"
#include "exec/wire/store.h"

namespace polyphony::exec {

GlooContext::Waiting::Waiting(GlooContext& context, std::function<void()> abort)
    : context_(context),
      abort_(std::move(abort)),
      patience_(context.options.timeout, steady_now()) {
  const std::scoped_lock lock(context_.mutex);
  context_.waiting.insert(this);
}

GlooContext::Waiting::~Waiting() {
  const std::scoped_lock lock(context_.mutex);
  context_.waiting.erase(this);
}

void await_key(const GlooContext& context, const std::string& key) {
  Patience patience(context.options.timeout, steady_now());
  if (!await_key(*context.letters, key, context.liveness->lost(), patience))
    throw LostPeer(Rank(), "it was not posted in time");
}

GlooContext::~GlooContext() {
  const bool lost = liveness && liveness->lost();
  liveness.reset();  // first, because its thread uses the members below
  // Destroying the process group would wait for operations that never end if a peer is lost.
  if (lost) static_cast<void>(messages.release());
}

GlooGroup GlooContext::make_process_group() const {
  const auto prefix = c10::make_intrusive<c10d::PrefixStore>("gloo", store);
  const auto group_options = c10d::ProcessGroupGloo::Options::create(milliseconds(kForEver));
  group_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_address));
  group_options->threads = 1;  // messages need none, and there is one barrier at a time
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
  for (const Waiting* one : waiting) one->abort_();
}

void GlooContext::look() {
  const std::scoped_lock lock(mutex);
  for (Waiting* one : waiting)
    if (one->patience_.over(steady_now())) one->abort_();
  if (watch) watch();
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
  const Waiting waits(*this, [&started] {
    for (const GlooWork& work : started) work->abort();
  });
  for (std::size_t i = 0; i < started.size(); ++i) {
    bool arrived = false;
    try {
      // Checks for a loss first: an abort before `waits` was registered would be missed.
      arrived = !liveness->lost() && started[i]->wait();
    } catch (const std::exception& error) {
      throw LostPeer(transfers[i].peer, first_line(error));
    }
    if (!arrived) throw LostPeer(Rank(), "a message did not arrive");
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
  if (waited != Waited::done) throw LostPeer(Rank(), "it did not end in time");
  work->wait();  // rethrows the collective's exception, if it failed
}

}  // namespace polyphony::exec
