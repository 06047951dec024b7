// Runs tests with real processes: starts this test binary again, once per rank, each in a given
// role over Gloo.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/gloo/gloo.h"
#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

using Role = std::function<void(Transport&)>;
// At namespace scope: const bool known = add_role("name", function);
bool add_role(const std::string& name, const Role& role, const GlooOptions& options = {});

// Uses the transport of connect() (exec/device/device.h) for the machine's device instead of Gloo.
bool add_device_role(const std::string& name,
                     const std::function<void(Transport&, torch::Device)>& role);
// Collectives over Gloo's messages even in small groups, as in large ones.
GlooOptions messages_only();

struct RankResult {
  int exit_status = 0;  // minus the signal when one ended it
  std::string output;   // stdout and stderr
  Seconds ended{};      // since the start
};
enum class StoreHost { rank_0, launcher };  // launcher: as torchrun's agent does
// Exit status 0: the role returned. 1: LostPeer, reported on stderr. 3: another exception. Kills
// what still runs after `limit`.
std::vector<RankResult> run_rank_processes(const std::string& role, int ranks, Seconds limit,
                                           StoreHost host = StoreHost::rank_0);

// Throws if the condition is false. For roles: doctest's macros do not work in threads and other
// processes.
void require(bool condition, const std::string& what);

}  // namespace polyphony::exec
