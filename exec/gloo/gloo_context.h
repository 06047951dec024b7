// The state that a Gloo transport shares with its communicators: the store, the detection of lost
// ranks, and the means to end a blocking call when a rank is lost. Internal to exec/gloo and to
// device transports over Gloo.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/gloo/gloo.h"
#include "exec/transport/barrier.h"
#include "exec/wire/own_thread.h"
#include "exec/wire/peer_links.h"
#include "shared/error.h"
#include "shared/patience.h"

namespace polyphony::exec {

using GlooWork = c10::intrusive_ptr<c10d::Work>;
using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

struct GlooContext {
  LaunchEnv launch;
  GlooOptions options;
  std::string own_address;
  bool spin = false;
  c10::intrusive_ptr<c10d::Store> store;
  // For Transport::post() and fetch(): a connection of its own, because a wait on a connection
  // blocks all other calls on it.
  c10::intrusive_ptr<c10d::Store> letters;
  std::unique_ptr<Liveness> liveness;

  // Registers a wait of the calling thread for the lifetime of this object: `abort` is called if a
  // peer is lost or the wait takes too long. It replaces the timeouts of Gloo and NCCL, which would
  // continue to count while this process is stopped.
  class Waiting {
   public:
    Waiting(GlooContext& context, std::function<void()> abort);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    friend struct GlooContext;
    GlooContext& context_;
    std::function<void()> abort_;
    Patience patience_;
  };
  std::mutex mutex;  // protects `waiting` and `watch`
  std::set<Waiting*> waiting;
  std::function<void()> watch;  // called several times a second, also while no call waits; or null

  GlooGroup messages;  // of all ranks

  ~GlooContext();
  GlooGroup make_process_group() const;
  std::unique_ptr<PeerLinks> make_links(const std::string& name, const std::vector<Rank>& members,
                                        std::size_t index) const;
  void wake_all();
  void look();  // called several times a second: ends waits that take too long, calls `watch`
  // Starts messages to and from other ranks, none of them empty, and waits for all.
  void move(const std::vector<Transfer>& transfers);
};

// Returns the context of a transport made by connect_gloo().
std::shared_ptr<GlooContext> context_of(Transport& transport);
// Returns the first line of the error's text, without the stack trace that c10::Error appends.
std::string first_line(const std::exception& error);
// Waits for a collective of ProcessGroupGloo. Such a collective has no abort, so this waits on a
// condition of its own, which an abort ends.
void await_collective(const GlooContext& context, const GlooWork& work);

// Blocks until the key has been posted.
void await_key(const GlooContext& context, const std::string& key);

// Runs a call. If it fails because a peer is lost, throws a LostPeer that names the lost rank.
template <class Call>
void guarded(GlooContext& context, const std::string& where, const Call& call) {
  try {
    if (context.liveness->lost()) throw LostPeer(Rank(), where);
    call();
    return;
  } catch (const InternalError&) {
    throw;
  } catch (const c10::AcceleratorError&) {
    throw;  // this rank's own device failed
  } catch (const LostPeer& loss) {
    throw context.liveness->explain(loss.rank, where + ": " + loss.what());
  } catch (const std::exception& error) {
    throw context.liveness->explain(Rank(), where + ": " + first_line(error));
  }
}

// Runs `make`, which opens connections, and returns its result. Throws LostPeer if a peer is lost
// or the timeout passes meanwhile.
template <class Make>
auto connected(const std::shared_ptr<GlooContext>& context, const Make& make) {
  auto made = on_own_thread([context, make] { return make(*context); }, context->liveness->lost(),
                            context->options.timeout);
  if (!made) throw LostPeer(Rank(), "connections were not made");
  return std::move(*made);
}

}  // namespace polyphony::exec
