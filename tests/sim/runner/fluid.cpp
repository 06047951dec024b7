#include "tests/sim/runner/fluid.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "shared/error.h"

namespace polyphony::tests {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Moving {
  std::uint32_t node;
  Crossing links;
  double left;  // bytes
  double most;  // its largest possible rate, bytes per second
  double rate = 0;
};
struct Fixed {
  std::uint32_t node;
  double until;
};

class Fluid {
 public:
  Fluid(const Compiled& compiled, const CostTable& costs)
      : compiled_(compiled),
        costs_(costs),
        start_(compiled.nodes.size()),
        end_(compiled.nodes.size()),
        waiting_(compiled.predecessors),
        moving_of_(compiled.nodes.size(), 0) {
    for (std::uint32_t link = 0; link < costs.network.links(); ++link)
      capacity_.push_back(costs.network.capacity(link).value);
  }

  void run() {
    for (std::uint32_t node = 0; node < compiled_.nodes.size(); ++node) {
      if (compiled_.predecessors[node] == 0) begin(node);
    }
    while (!fixed_.empty() || !moving_.empty()) {
      share();
      step();
    }
  }
  Seconds start(std::uint32_t node) const { return Seconds(start_[node]); }
  Seconds end(std::uint32_t node) const { return Seconds(end_[node]); }

 private:
  void begin(std::uint32_t node) {
    start_[node] = now_;
    fixed_.push_back(
        {node, now_ + (costs_.nodes[node].duration + costs_.nodes[node].delay).count()});
  }

  void launch(std::uint32_t node) {
    const Range flows = costs_.nodes[node].flows;
    for (std::uint32_t i = flows.begin; i < flows.end; ++i) {
      const Flow& flow = costs_.flows[i];
      if (flow.source == flow.destination || flow.bytes.value == 0) continue;
      moving_.push_back({node, costs_.network.crossing(flow.source, flow.destination),
                         static_cast<double>(flow.bytes.value), most(flow)});
      ++moving_of_[node];
    }
    if (moving_of_[node] == 0) finish(node);
  }

  double most(const Flow& flow) const {
    const Network& network = costs_.network;
    const bool limited = network.shaped && network.connection.value > 0 &&
                         network.over_fabric(flow.source, flow.destination);
    return limited ? network.connection.value : kNever;
  }

  void finish(std::uint32_t node) {
    end_[node] = now_;
    for (std::uint32_t i = compiled_.successor_begin[node]; i < compiled_.successor_begin[node + 1];
         ++i) {
      if (--waiting_[compiled_.successors[i]] == 0) begin(compiled_.successors[i]);
    }
  }

  // Freezes the flows that reach their largest rate, or else those of the most contended link,
  // until all are frozen.
  void share() {
    std::vector<double> free = capacity_;
    std::vector<int> users(capacity_.size(), 0);
    std::vector<Moving*> open;
    for (Moving& flow : moving_) {
      open.push_back(&flow);
      for (const std::uint32_t link : flow.links) ++users[link];
    }
    while (!open.empty()) {
      std::uint32_t tightest = 0;
      double least = kNever;
      for (std::uint32_t link = 0; link < free.size(); ++link) {
        if (users[link] == 0 || free[link] / users[link] >= least) continue;
        least = free[link] / users[link];
        tightest = link;
      }
      double lowest = kNever;
      for (const Moving* flow : open) lowest = std::min(lowest, flow->most);
      const bool limited = lowest < least;
      least = std::min(least, lowest);
      std::erase_if(open, [&](Moving* flow) {
        if (limited) {
          if (flow->most > lowest) return false;
        } else if (std::find(flow->links.begin(), flow->links.end(), tightest) ==
                   flow->links.end()) {
          return false;
        }
        flow->rate = least;
        for (const std::uint32_t link : flow->links) {
          free[link] -= least;
          --users[link];
        }
        return true;
      });
    }
  }

  // Advances to the next time at which anything ends, and ends everything that ends then.
  void step() {
    double next = kNever;
    for (const Fixed& item : fixed_) next = std::min(next, item.until);
    for (const Moving& flow : moving_) next = std::min(next, now_ + flow.left / flow.rate);
    POLYPHONY_CHECK(next < kNever, "nothing ends");
    const double slack = 1e-14 * next;
    std::vector<std::uint32_t> launched, ended;
    std::erase_if(moving_, [&](Moving& flow) {
      const bool done = now_ + flow.left / flow.rate <= next + slack;
      flow.left -= flow.rate * (next - now_);
      if (done && --moving_of_[flow.node] == 0) ended.push_back(flow.node);
      return done;
    });
    std::erase_if(fixed_, [&](const Fixed& item) {
      if (item.until > next + slack) return false;
      launched.push_back(item.node);
      return true;
    });
    now_ = next;
    for (const std::uint32_t node : ended) finish(node);
    for (const std::uint32_t node : launched) launch(node);
  }

  const Compiled& compiled_;
  const CostTable& costs_;
  std::vector<double> start_, end_;
  std::vector<std::uint32_t> waiting_, moving_of_;
  std::vector<double> capacity_;  // by link
  std::vector<Moving> moving_;
  std::vector<Fixed> fixed_;
  double now_ = 0;
};

}  // namespace

Timeline play_fluid(const Program& program, const Compiled& compiled, const CostTable& costs) {
  Fluid fluid(compiled, costs);
  fluid.run();
  Timeline result;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Seconds end = fluid.end(compiled.op_end[op]);
    result.ops.push_back({OpId(op), fluid.start(compiled.op_start[op]), end});
    result.makespan = std::max(result.makespan, end);
  }
  return result;
}

}  // namespace polyphony::tests
