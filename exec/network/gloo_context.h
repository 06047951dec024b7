// What a Gloo transport and its communicators share: the store, the watch over lost ranks, and how
// a blocking call ends when one is lost. Internal to exec/network/gloo.cpp.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/network/gloo.h"
#include "exec/network/peer_links.h"
#include "exec/transport/barrier.h"
#include "shared/error.h"

namespace polyphony::exec {

using GlooWork = c10::intrusive_ptr<c10d::Work>;
using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

struct GlooContext {
  LaunchEnv launch;
  GlooOptions options;
  std::string own_address;
  bool spin = false;
  c10::intrusive_ptr<c10d::Store> store;
  // Of Transport::post and fetch: a connection of its own, for a wait on one blocks all else on it.
  c10::intrusive_ptr<c10d::Store> letters;
  std::unique_ptr<Liveness> liveness;

  std::mutex mutex;          // of works
  std::set<GlooWork> works;  // that a thread waits for

  GlooGroup messages;  // of all ranks

  ~GlooContext();
  GlooGroup make_process_group() const;
  std::unique_ptr<PeerLinks> make_links(const std::string& name, const std::vector<Rank>& members,
                                        std::size_t index) const;
  void wake_all();
  // Starts messages to and from other ranks, all with bytes in them, and waits for all.
  void move(const std::vector<Transfer>& transfers);
};

// Of a transport made by connect_gloo.
std::shared_ptr<GlooContext> context_of(Transport& transport);
// c10::Error adds a stack trace.
std::string first_line(const std::exception& error);
// A collective of ProcessGroupGloo cannot be aborted: wait on our own condition, which an abort
// ends.
void await_collective(const GlooContext& context, const GlooWork& work);

// Blocks until somebody has posted it.
void await_key(const GlooContext& context, const std::string& key);

// Runs a call; when it fails because somebody is gone, says who.
template <class Call>
void guarded(GlooContext& context, const std::string& where, const Call& call) {
  try {
    if (context.liveness->lost()) throw LostPeer(Rank(), where);
    call();
    return;
  } catch (const InternalError&) {
    throw;
  } catch (const LostPeer& loss) {
    throw context.liveness->explain(loss.rank, where + ": " + loss.what());
  } catch (const std::exception& error) {
    throw context.liveness->explain(Rank(), where + ": " + first_line(error));
  }
}

// Makes connections on a thread of its own: neither Gloo nor the store can be woken when a peer is
// lost meanwhile.
template <class Make>
auto connected(const std::shared_ptr<GlooContext>& context, const Make& make) {
  struct Result {
    std::atomic<std::uint32_t> ready{0};
    decltype(make(*context)) made;
    std::exception_ptr error;
  };
  const auto result = std::make_shared<Result>();
  std::thread thread([result, context, make] {
    try {
      result->made = make(*context);
    } catch (...) {
      result->error = std::current_exception();
    }
    result->ready.store(1, std::memory_order_release);
    futex_wake_all(result->ready);
  });
  const Waited waited =
      wait_for_change(result->ready, 0, false, context->liveness->lost(), context->options.timeout);
  if (waited != Waited::done) {
    thread.detach();
    throw LostPeer(Rank(), "connections were not made");
  }
  thread.join();
  if (result->error) std::rethrow_exception(result->error);
  return std::move(result->made);
}

}  // namespace polyphony::exec
