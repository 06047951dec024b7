// What a Gloo transport and its communicators share: the store, the watch over lost ranks, and how
// a blocking call ends when one is lost. Internal to exec/gloo/gloo.cpp.
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
  // Of Transport::post and fetch: a connection of its own, for a wait on one blocks all else on it.
  c10::intrusive_ptr<c10d::Store> letters;
  std::unique_ptr<Liveness> liveness;

  // What a thread waits for, while this lives. Time-outs of Gloo's and NCCL's own run on while this process is
  // stopped, so that they have none: `abort` is called when a peer is lost or it takes too long.
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
  std::mutex mutex;  // of waiting and watch
  std::set<Waiting*> waiting;
  std::function<void()> watch;  // several times a second, whatever this rank waits for; or null

  GlooGroup messages;  // of all ranks

  ~GlooContext();
  GlooGroup make_process_group() const;
  std::unique_ptr<PeerLinks> make_links(const std::string& name, const std::vector<Rank>& members,
                                        std::size_t index) const;
  void wake_all();
  void look();  // several times a second
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
  } catch (const c10::AcceleratorError&) {
    throw;  // of this rank's own device
  } catch (const LostPeer& loss) {
    throw context.liveness->explain(loss.rank, where + ": " + loss.what());
  } catch (const std::exception& error) {
    throw context.liveness->explain(Rank(), where + ": " + first_line(error));
  }
}

// Makes connections, which a lost peer and the time-out end.
template <class Make>
auto connected(const std::shared_ptr<GlooContext>& context, const Make& make) {
  auto made = on_own_thread([context, make] { return make(*context); }, context->liveness->lost(),
                            context->options.timeout);
  if (!made) throw LostPeer(Rank(), "connections were not made");
  return std::move(*made);
}

}  // namespace polyphony::exec
