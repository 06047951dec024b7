// What the ranks of a local run say on stderr, shown while they run.
//   A line that several say alike is shown once. Every line is held back for a moment: when a rank
//   refuses its input meanwhile, its words alone are shown, for the others refuse the same or miss
//   it.
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

  // What a rank has written since. `ended`: nothing follows.
  void hear(std::size_t rank, const std::string& text, bool ended, Seconds now);
  // From now on, only what this rank says.
  void listen_only_to(std::size_t rank) { only_ = rank; }
  // The lines that are to be shown now; `all`: without holding any back.
  std::string take(Seconds now, bool all = false);
  // The first "lost rank N: why" that the rank has said; empty: it blames nobody.
  std::string loss(std::size_t rank) const;
  // Somebody says that this rank is lost.
  bool lost(std::size_t rank) const { return lost_.contains(rank); }
  // It said that a signal stopped it.
  bool stopped(std::size_t rank) const { return stopped_.contains(rank); }

 private:
  struct Line {
    std::size_t rank = 0;
    std::string text;
    Seconds heard{};
  };
  static constexpr std::size_t kEverybody = static_cast<std::size_t>(-1);

  std::size_t only_ = kEverybody;
  std::map<std::size_t, std::string> begun_, losses_;
  std::set<std::size_t> stopped_, lost_;
  std::deque<Line> held_;
  std::set<std::string> shown_;
};

// On stderr, over a progress bar that may stand there.
void say(const std::string& lines);

}  // namespace polyphony::sim
