#include "sim/runner/play_request.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "shared/error.h"

namespace polyphony::sim {
namespace {

constexpr std::uint64_t kRequest = 0x706c617920303031;  // "play 001"

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  template <class... T>
  void put_all(const T&... values) {
    (put(values), ...);
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  void get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    copy(&value, sizeof value);
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::uint64_t size = 0;
    get(size);
    POLYPHONY_CHECK(size <= (bytes_.size() - at_) / sizeof(T), "a list is cut off");
    values.resize(size);
    copy(values.data(), size * sizeof(T));
  }
  template <class... T>
  void get_all(T&... values) {
    (get(values), ...);
  }
  void check_end() const { POLYPHONY_CHECK(at_ == bytes_.size(), "bytes are left over"); }

 private:
  void copy(void* to, std::size_t size) {
    POLYPHONY_CHECK(bytes_.size() - at_ >= size, "the bytes are cut off");
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Calls f with every field of the network, in the order of its declaration.
template <class Fields, class F>
void with_fields(Fields& n, const F& f) {
  f(n.node_of, n.node_rate, n.fabric_rate, n.shaped, n.bus_of, n.nic_of, n.leaf_of, n.leaves,
    n.bus_rate, n.connection, n.leaf_rate, n.node_factor, n.nic_factor, n.host_of, n.hosts,
    n.host_rate, n.host_memory_rate);
}

}  // namespace

std::string to_bytes(const Compiled& compiled, const CostTable& costs, Seconds precision) {
  Writer out;
  out.reserve(compiled.nodes.size() * (sizeof(Node) + sizeof(NodeCost) + 12) +
              compiled.successors.size() * 4 + costs.flows.size() * sizeof(Flow) + (1 << 16));
  out.put_all(kRequest, precision, compiled.nodes, compiled.successor_begin, compiled.successors,
              compiled.predecessors, costs.nodes, costs.flows);
  with_fields(costs.network, [&](const auto&... fields) { out.put_all(fields...); });
  return out.take();
}

PlayRequest read_request(std::string_view bytes) {
  Reader in(bytes);
  PlayRequest request;
  std::uint64_t mark = 0;
  in.get(mark);
  POLYPHONY_CHECK(mark == kRequest, "the request is of another build");
  in.get_all(request.precision, request.compiled.nodes, request.compiled.successor_begin,
             request.compiled.successors, request.compiled.predecessors, request.costs.nodes,
             request.costs.flows);
  with_fields(request.costs.network, [&](auto&... fields) { in.get_all(fields...); });
  in.check_end();
  return request;
}

std::string to_bytes(const PlayResult& result) {
  Writer out;
  out.reserve(2 * sizeof(double) * result.start.size() + 64 * result.sent_on_node.size() + 256);
  out.put_all(result.wall, result.flows, result.sent_on_node, result.sent_on_fabric, result.start,
              result.end);
  return out.take();
}

PlayResult read_result(std::string_view bytes) {
  Reader in(bytes);
  PlayResult result;
  in.get_all(result.wall, result.flows, result.sent_on_node, result.sent_on_fabric, result.start,
             result.end);
  in.check_end();
  return result;
}

}  // namespace polyphony::sim
