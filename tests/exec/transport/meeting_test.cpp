// Ranks that connect, and foreign processes at the store's port and at the ports of direct links.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include <doctest/doctest.h>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "exec/gloo/gloo.h"
#include "exec/wire/peer_links.h"
#include "exec/wire/sockets.h"
#include "exec/wire/store.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

GlooOptions within_a_second() {
  GlooOptions options;
  options.join_timeout = Seconds(1);
  return options;
}

// What connect_gloo() refuses the launch with.
std::string refusal(const LaunchEnv& launch) {
  try {
    connect_gloo(launch, within_a_second());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

// A server that accepts all connections and sends the same text to each.
class Stranger {
 public:
  explicit Stranger(const std::string& says)
      : listener_(listen_at("127.0.0.1")), thread_([this, says] {
          for (;;) {
            guests_.emplace_back(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!guests_.back().valid()) return;
            if (!says.empty()) write_all(guests_.back(), says.data(), says.size());
          }
        }) {}
  ~Stranger() {
    shutdown(listener_.socket.get(), SHUT_RDWR);
    thread_.join();
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  std::uint16_t port() const { return listener_.port; }

 private:
  Listener listener_;
  std::vector<Socket> guests_;
  std::thread thread_;
};

LaunchEnv launch_of(std::uint32_t rank, int ranks, std::uint16_t port) {
  LaunchEnv launch;
  launch.rank = Rank(rank);
  launch.world_size = ranks;
  launch.master_port = port;
  return launch;
}

// A store of one process, for links.
struct Letters {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> texts;
  void set(const std::string& key, const std::string& text) {
    const std::scoped_lock lock(mutex);
    texts[key] = text;
    changed.notify_all();
  }
  std::string get(const std::string& key) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return texts.contains(key); });
    return texts[key];
  }
};

Socket visit(const std::string& card) {
  std::istringstream text(card);
  std::string address;
  std::uint16_t port = 0;
  text >> address >> port;
  return connect_to(address, port, Seconds(5));
}

}  // namespace

TEST_SUITE("transport") {
  TEST_CASE("a rank that never appears and a port in use are input errors") {
    LaunchEnv launch = launch_of(0, 3, listen_at("127.0.0.1").port);
    CHECK(refusal(launch) ==
          "launch: of 3 ranks, these did not connect: 1, 2 (start them all within 1 s)");
    const Listener taken = listen_at("127.0.0.1");
    launch.master_port = taken.port;
    const std::string port = std::to_string(taken.port);
    CHECK(refusal(launch) ==
          "launch: rank 0 cannot listen at 127.0.0.1 port " + port +
              ": Address already in use (choose another MASTER_PORT, or stop the process that uses "
              "this one: `ss -ltnp 'sport = :" +
              port + "'` shows it)");
    launch.rank = Rank(1u);
    launch.master_port = listen_at("127.0.0.1").port;  // this listener is closed at once
    CHECK(refusal(launch).find("cannot connect to 127.0.0.1:" +
                               std::to_string(launch.master_port)) != std::string::npos);
  }

  TEST_CASE("a foreign server at the store's port is reported, silent or not") {
    for (const char* says : {"", "HTTP/1.1 400 Bad Request\r\n\r\n"}) {
      const Stranger stranger(says);
      const std::string text = refusal(launch_of(1, 2, stranger.port()));
      CAPTURE(text);
      CHECK(text.find("127.0.0.1:" + std::to_string(stranger.port())) != std::string::npos);
      CHECK(text.find("another program uses this port; choose another MASTER_PORT") !=
            std::string::npos);
    }
  }

  TEST_CASE("a rank that is started twice is refused, and the run continues without it") {
    const std::uint16_t port = listen_at("127.0.0.1").port;
    std::array<std::string, 3> said;
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        try {
          // The host stays until the others have spoken.
          const auto store = meet_at_store(launch_of(i == 0 ? 0 : 1, 2, port), Seconds(20));
          set_text(*store, "done/" + std::to_string(i), "yes");
          if (i == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
          said[i] = "there";
        } catch (const InputError& error) {
          said[i] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(said[0] == "there");
    const std::string& refused = said[1] == "there" ? said[2] : said[1];
    CHECK((said[1] == "there") != (said[2] == "there"));
    CHECK(refused.find("rank 1 of 2 has already connected to 127.0.0.1:" + std::to_string(port)) !=
          std::string::npos);
  }

  TEST_CASE("foreign connections at a link's port do not delay its members") {
    Letters letters;
    const std::atomic<bool> aborted{false};
    const auto member = [&](std::size_t index) {
      const PeerLinks::Meeting meeting{
          .set = [&](const std::string& key, const std::string& text) { letters.set(key, text); },
          .get = [&](const std::string& key) { return letters.get(key); },
          .own_address = "127.0.0.1"};
      PeerLinks links({Rank(0u), Rank(1u)}, index, meeting, false, aborted, Seconds(20));
      double sum = static_cast<double>(index) + 1;
      links.all_reduce(Element::float64, Reduction::sum, reinterpret_cast<std::byte*>(&sum),
                       sizeof(sum));
      return sum;
    };
    double first = 0;
    std::thread thread([&] { first = member(0); });
    const std::string card = letters.get("0");
    const Socket silent = visit(card), talks = visit(card);
    const std::string words = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    write_all(talks, words.data(), words.size());
    {
      const Socket hangs_up = visit(card);
    }
    CHECK(member(1) == 3);
    thread.join();
    CHECK(first == 3);
  }

  TEST_CASE("connecting asks no name server for names of addresses") {
    // The function that LibTorch's calls find. Every machine knows the name of this address.
    const auto found = reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_DEFAULT, "getnameinfo"));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    REQUIRE(inet_pton(AF_INET, "127.0.0.1", &address.sin_addr) == 1);
    std::array<char, NI_MAXHOST> text{};
    CHECK(found(reinterpret_cast<const sockaddr*>(&address), sizeof(address), text.data(),
                text.size(), nullptr, 0, 0) == 0);
    CHECK(std::string(text.data()) == "127.0.0.1");
  }
}

}  // namespace polyphony::exec
