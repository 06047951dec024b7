// Shows what the ranks of a local run print on stderr, while they run.
//   A line that several ranks print is shown once. Every line is delayed by kHold: if a rank
//   refuses its input in that time, only its lines are shown, because the others report the same
//   refusal or the loss of that rank.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "shared/units.h"

namespace polyphony::sim {

class RankTalk {
 public:
  static constexpr Seconds kHold{1};

  // Takes what a rank has written since the last call. `ended`: nothing follows.
  void hear(std::size_t rank, const std::string& text, bool ended, Seconds now);
  // From now on shows only the lines of this rank.
  void listen_only_to(std::size_t rank) { only_ = rank; }
  // Returns the lines to show now; `all`: without delay.
  std::string take(Seconds now, bool all = false);
  // The first "lost rank N: why" of this rank; empty if it printed none.
  std::string loss(std::size_t rank) const;
  // Whether another rank reported this rank as lost.
  bool lost(std::size_t rank) const { return lost_.contains(rank); }
  // Whether the rank reported that a signal stopped it.
  bool stopped(std::size_t rank) const { return stopped_.contains(rank); }

 private:
  struct Line {
    std::size_t rank = 0;
    std::string text;
    Seconds heard{};
  };
  static constexpr std::size_t kAllRanks = static_cast<std::size_t>(-1);

  std::size_t only_ = kAllRanks;
  std::map<std::size_t, std::string> begun_, losses_;
  std::set<std::size_t> stopped_, lost_;
  std::deque<Line> held_;
  std::set<std::string> shown_;
};

// Prints lines on stderr, over a progress bar if there is one.
void say(const std::string& lines);

}  // namespace polyphony::sim
