// Builds a KernelGraph. Internal to traces/kernels/kernel_graph.cpp; the rules are in its header,
// kernel_graph.h.
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
  // Index of one rank's events, used while its edges are found.
  struct Lines {
    std::map<std::int32_t, std::vector<std::uint32_t>> streams;  // events by start
    std::vector<std::uint32_t> launched;                         // events, in launch order
    std::vector<Nanoseconds> ended;                              // their ends, ascending
    std::map<std::uint32_t, std::vector<std::uint32_t>>
        waits;              // by event: the events for which it has a recorded wait
    Nanoseconds soonest{};  // shortest time from a launch to its kernel
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
  // Adds an edge. Returns false, and adds nothing, if the recorded times contradict it.
  bool add_edge(const GraphEdge& edge, Nanoseconds least = {});

  const DeviceTrace& trace(std::uint32_t rank) const { return ranks_.traces[rank]; }
  Nanoseconds at(std::uint32_t rank, Nanoseconds own) const {
    return own + ranks_.clocks[rank].shift;
  }
  static bool has_launch(const DeviceEvent& event) { return event.launched < event.start; }

  void add_events(std::uint32_t rank);
  void follow_streams(std::uint32_t rank);
  void take_recorded_waits(std::uint32_t rank);
  // Adds the edges from other streams to event `index`. `known`: the time at which all its other
  // predecessors were done.
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
  std::vector<std::vector<bool>> waited_;  // by rank and event: whether another stream waits for it
};

}  // namespace polyphony::traces
