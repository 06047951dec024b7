// Puts a KernelGraph together: internal to traces/kernels/kernel_graph.cpp, whose header says the rules.
#pragma once

#include <map>
#include <optional>

#include "traces/kernels/kernel_graph.h"

namespace polyphony::traces {

class GraphBuilder {
 public:
  explicit GraphBuilder(const RankSet& ranks);
  RecordedGraph build();

 private:
  // Of one rank, while its edges are looked for.
  struct Lines {
    std::map<std::int32_t, std::vector<std::uint32_t>> streams;  // events by start
    std::vector<std::uint32_t> launched;                         // those with a launch, by it
    std::vector<Nanoseconds> ended;                              // their ends, rising
    std::map<std::uint32_t, std::vector<std::uint32_t>>
        waits;              // by event: recorded ones for others
    Nanoseconds soonest{};  // from a launch to its kernel
  };
  struct Raw {
    GraphEdge edge;
    Nanoseconds least{};
  };
  struct HostPoint {
    Nanoseconds at{};
    std::uint32_t point = 0;
  };

  std::uint32_t add_point(std::uint32_t rank, Nanoseconds at);
  // False where the recorded times say otherwise: there is no such edge then.
  bool add_edge(const GraphEdge& edge, Nanoseconds least = {});

  const DeviceTrace& trace(std::uint32_t rank) const { return ranks_.traces[rank]; }
  Nanoseconds at(std::uint32_t rank, Nanoseconds own) const {
    return own + ranks_.clocks[rank].shift;
  }
  static bool has_launch(const DeviceEvent& event) { return event.launched < event.start; }

  void add_events(std::uint32_t rank);
  void follow_streams(std::uint32_t rank);
  void take_recorded_waits(std::uint32_t rank);
  // What event `index` waits for on other streams; `known`: when all else that it follows was done.
  void follow_others(std::uint32_t rank, std::uint32_t index, Nanoseconds known, bool first_update);
  std::optional<std::uint32_t> ended_before(std::uint32_t rank,
                                            const std::vector<std::uint32_t>& stream,
                                            Nanoseconds time) const;
  void follow_host(std::uint32_t rank);
  void add_return(std::uint32_t rank, const HostWait& wait, std::vector<HostPoint>& line);
  std::vector<std::uint32_t> waited_for(std::uint32_t rank, const HostWait& wait) const;
  std::optional<std::uint32_t> last_launched(std::uint32_t rank,
                                             const std::vector<std::uint32_t>& stream,
                                             Nanoseconds before) const;
  void meet();
  void join(const Meeting& meeting, const std::map<CollectiveShape, Nanoseconds>& shortest);
  const CollectiveShape& shape_of(const Meeting::Member& member) const;
  void split_steps();
  void note_unseen();
  RecordedGraph finish();

  const RankSet& ranks_;
  KernelGraph graph_;
  std::vector<Raw> raw_;
  std::vector<Nanoseconds> at_;            // by point
  std::vector<Lines> lines_;               // by rank
  std::vector<std::vector<bool>> waited_;  // by rank and event: another stream waits for it
};

}  // namespace polyphony::traces
