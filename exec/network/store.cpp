#include "exec/network/store.h"

#include <sstream>
#include <vector>

#include "exec/network/sockets.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

std::chrono::milliseconds milliseconds(Seconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

std::string in_words(Seconds time) {
  std::ostringstream text;
  text << time.count() << " s";
  return text.str();
}

c10d::TCPStoreOptions store_options(const LaunchEnv& launch, Seconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = launch.master_port;
  options.waitWorkers = false;
  options.timeout = milliseconds(timeout);
  return options;
}

c10::intrusive_ptr<c10d::Store> private_part(const LaunchEnv& launch,
                                             c10::intrusive_ptr<c10d::Store> store) {
  return c10::make_intrusive<c10d::PrefixStore>("polyphony/" + std::to_string(launch.restart),
                                                std::move(store));
}

[[noreturn]] void cannot_meet(const std::string& what, const std::string& hint) {
  throw InputError("launch", "", what, hint);
}

c10::intrusive_ptr<c10d::Store> host_store(const LaunchEnv& launch, Seconds timeout) {
  c10d::TCPStoreOptions options = store_options(launch, timeout);
  // We open the port ourselves: LibTorch only logs a port that is taken, and always listens to the
  // whole network.
  Listener listener;
  try {
    listener = listen_at(is_loopback(launch.master_address) ? launch.master_address : "0.0.0.0",
                         launch.master_port);
  } catch (const std::runtime_error& error) {
    cannot_meet(std::string("rank 0 ") + error.what(), "choose another MASTER_PORT");
  }
  options.isServer = true;
  options.masterListenFd = listener.socket.release();
  return c10::make_intrusive<c10d::TCPStore>(launch.master_address, options);
}

c10::intrusive_ptr<c10d::Store> connect_store(const LaunchEnv& launch, Seconds timeout) {
  try {
    // LibTorch tries once a second; we look more often whether anyone listens yet.
    connect_to(launch.master_address, launch.master_port, timeout);
    return c10::make_intrusive<c10d::TCPStore>(launch.master_address,
                                               store_options(launch, timeout));
  } catch (const std::exception& error) {
    const std::string text = error.what();
    cannot_meet(text.substr(0, text.find('\n')),
                "is rank 0 running, and MASTER_ADDR:MASTER_PORT right?");
  }
}

}  // namespace

c10::intrusive_ptr<c10d::Store> meet_at_store(const LaunchEnv& launch, Seconds timeout) {
  const bool hosts = launch.store_host() == launch.rank;
  const auto store =
      private_part(launch, hosts ? host_store(launch, timeout) : connect_store(launch, timeout));
  std::vector<std::string> keys;
  for (int rank = 0; rank < launch.world_size; ++rank)
    keys.push_back("here/" + std::to_string(rank));
  try {
    set_text(*store, keys[launch.rank.value], "yes");
    store->wait(keys, milliseconds(timeout));
  } catch (const std::exception&) {
    std::string missing;
    for (const std::string& key : keys) {
      if (!store->check({key}))
        missing += (missing.empty() ? "" : ", ") + key.substr(key.find('/') + 1);
    }
    cannot_meet(
        "of " + std::to_string(launch.world_size) + " ranks these did not appear: " + missing,
        "start them all within " + in_words(timeout));
  }
  return store;
}

c10::intrusive_ptr<c10d::Store> another_connection(const LaunchEnv& launch, Seconds timeout) {
  return private_part(launch, connect_store(launch, timeout));
}

void set_text(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::string get_text(c10d::Store& store, const std::string& key) {
  const std::vector<std::uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

}  // namespace polyphony::exec
