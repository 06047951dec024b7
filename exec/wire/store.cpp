#include "exec/wire/store.h"

#include <random>
#include <sstream>
#include <vector>

#include "exec/system/process.h"
#include "exec/wire/own_thread.h"
#include "exec/wire/sockets.h"
#include "shared/error.h"
#include "shared/patience.h"

namespace polyphony::exec {

namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

// Before liveness detection starts, no rank is lost.
const std::atomic<bool> kNeverLost{false};
const std::string kAllHere = "all here";

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

std::string in_words(Seconds time) {
  std::ostringstream text;
  text << time.count() << " s";
  return text.str();
}

std::string place(const LaunchEnv& launch) {
  return launch.master_address + ":" + std::to_string(launch.master_port);
}

std::string line_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

c10d::TCPStoreOptions store_options(const LaunchEnv& launch, Seconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = launch.master_port;
  options.waitWorkers = false;
  options.timeout = milliseconds(timeout);
  return options;
}

[[noreturn]] void cannot_meet(const std::string& what, const std::string& hint) {
  throw InputError("launch", "", what, hint);
}

std::string other_port(const LaunchEnv& launch) {
  return "choose another MASTER_PORT, or stop the process that uses this one: `ss -ltnp 'sport = "
         ":" +
         std::to_string(launch.master_port) + "'` shows it";
}

// Connects LibTorch's client on a thread of its own: after any server has accepted the connection,
// the client sends a greeting and waits for the answer without a limit.
StorePointer greeted(const LaunchEnv& launch, const c10d::TCPStoreOptions& options,
                     Seconds timeout) {
  const std::string stranger = "another program uses this port; " + other_port(launch);
  std::optional<StorePointer> made;
  try {
    made = on_own_thread(
        [host = launch.master_address, options]() -> StorePointer {
          return c10::make_intrusive<c10d::TCPStore>(host, options);
        },
        kNeverLost, timeout);
  } catch (const std::exception& error) {
    cannot_meet(place(launch) + " does not answer like the store of a run: " + line_of(error),
                stranger);
  }
  if (!made)
    cannot_meet(place(launch) +
                    " accepts connections, but did not answer like the store of a run within " +
                    in_words(timeout),
                stranger);
  (*made)->setTimeout(milliseconds(kForEver));
  return c10::make_intrusive<c10d::PrefixStore>("polyphony/" + std::to_string(launch.restart),
                                                std::move(*made));
}

StorePointer host_store(const LaunchEnv& launch, Seconds timeout) {
  c10d::TCPStoreOptions options = store_options(launch, timeout);
  // We open the port ourselves: LibTorch only logs that a port is in use, and always listens on all
  // interfaces.
  Listener listener;
  try {
    listener = listen_at(is_loopback(launch.master_address) ? launch.master_address : "0.0.0.0",
                         launch.master_port);
  } catch (const std::runtime_error& error) {
    cannot_meet(std::string("rank 0 ") + error.what(), other_port(launch));
  }
  options.isServer = true;
  options.masterListenFd = listener.socket.release();
  return greeted(launch, options, timeout);
}

StorePointer connect_store(const LaunchEnv& launch, Seconds timeout) {
  try {
    // LibTorch tries once a second; we check more often whether the store is listening yet.
    connect_to(launch.master_address, launch.master_port, timeout);
  } catch (const std::exception& error) {
    cannot_meet(line_of(error), "check that rank 0 is running, and MASTER_ADDR and MASTER_PORT");
  }
  return greeted(launch, store_options(launch, timeout), timeout);
}

std::string here(int rank) { return "here/" + std::to_string(rank); }

std::string missing_ranks(c10d::Store& store, int world_size) {
  std::string missing;
  for (int rank = 0; rank < world_size; ++rank)
    if (!store.check({here(rank)})) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  return missing;
}

// Registers this rank and waits for all others; returns the ranks that did not appear. Rank 0 waits
// for each rank, the others wait for rank 0's confirmation.
std::string await_all(const LaunchEnv& launch, c10d::Store& store, Seconds timeout) {
  const int self = static_cast<int>(launch.rank.value);
  const std::string token = std::to_string(std::random_device{}());
  const std::vector<std::uint8_t> own(token.begin(), token.end());
  if (store.compareSet(here(self), {}, own) != own)
    cannot_meet("rank " + std::to_string(self) + " of " + std::to_string(launch.world_size) +
                    " has already connected to " + place(launch),
                "a rank was started twice, or another run uses the port: choose another "
                "MASTER_PORT");
  Patience patience(timeout, steady_now());
  const auto came = [&](const std::string& key) {
    return await_key(store, key, kNeverLost, patience);
  };
  if (self != 0) return came(kAllHere) ? "" : missing_ranks(store, launch.world_size);
  for (int rank = 1; rank < launch.world_size; ++rank)
    if (!came(here(rank))) return missing_ranks(store, launch.world_size);
  set_text(store, kAllHere, "yes");
  return "";
}

}  // namespace

std::chrono::milliseconds milliseconds(Seconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

c10::intrusive_ptr<c10d::Store> meet_at_store(const LaunchEnv& launch, Seconds timeout) {
  const bool hosts = launch.store_host() == launch.rank;
  const StorePointer store = hosts ? host_store(launch, timeout) : connect_store(launch, timeout);
  const std::string gone = "the store at " + place(launch) + " is gone";
  const std::string see = launch.launcher_hosts_store ? "find out why the launcher ended it"
                                                      : "find out why rank 0 ended";
  std::optional<std::string> missing;
  try {
    constexpr Seconds kAnswer{5};  // after the timeout: time to read which ranks are missing
    missing = on_own_thread([launch, store, timeout] { return await_all(launch, *store, timeout); },
                            kNeverLost, timeout + kAnswer);
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    cannot_meet(gone + ": " + line_of(error), see);
  }
  if (!missing) cannot_meet(gone + ": it does not answer", see);
  if (!missing->empty())
    cannot_meet(
        "of " + std::to_string(launch.world_size) + " ranks, these did not connect: " + *missing,
        "start them all within " + in_words(timeout));
  return store;
}

c10::intrusive_ptr<c10d::Store> another_connection(const LaunchEnv& launch, Seconds timeout) {
  return connect_store(launch, timeout);
}

void set_text(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::string get_text(c10d::Store& store, const std::string& key) {
  const std::vector<std::uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

bool await_key(c10d::Store& store, const std::string& key, const std::atomic<bool>& aborted,
               Patience& patience) {
  while (!aborted.load(std::memory_order_acquire) && !patience.over(steady_now())) {
    try {
      store.wait({key}, milliseconds(Patience::kLongestLook));
      return true;
    } catch (const c10::DistStoreError&) {
      // Not posted yet. We wait in slices, because a loss of a peer does not interrupt the wait.
    }
  }
  return false;
}

}  // namespace polyphony::exec
