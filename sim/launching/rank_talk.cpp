#include "sim/launching/rank_talk.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace polyphony::sim {

void RankTalk::hear(std::size_t rank, const std::string& text, bool ended, Seconds now) {
  std::string& begun = begun_[rank];
  begun += text;
  if (ended && !begun.empty() && begun.back() != '\n') begun += '\n';
  for (std::size_t end = begun.find('\n'); end != std::string::npos; end = begun.find('\n')) {
    const std::string line = begun.substr(0, end);
    begun.erase(0, end + 1);
    const std::string blame = ": lost rank ";
    if (const std::size_t loss = line.find(blame); loss != std::string::npos) {
      losses_.emplace(rank, line.substr(loss + 2));
      lost_.insert(std::strtoul(line.c_str() + loss + blame.size(), nullptr, 10));
    }
    if (line.starts_with("polyphony-worker: stopped by ")) stopped_.insert(rank);
    held_.push_back({rank, line, now});
  }
}

std::string RankTalk::take(Seconds now, bool all) {
  // A run may say something every step, for weeks.
  constexpr std::size_t kRemembered = 10'000;
  std::string lines;
  while (!held_.empty() && (all || now - held_.front().heard >= kHold)) {
    const Line& line = held_.front();
    if (shown_.size() >= kRemembered) shown_.clear();
    if ((only_ == kAllRanks || only_ == line.rank) && shown_.insert(line.text).second)
      lines += line.text + "\n";
    held_.pop_front();
  }
  return lines;
}

std::string RankTalk::loss(std::size_t rank) const {
  const auto found = losses_.find(rank);
  return found == losses_.end() ? "" : found->second;
}

void say(const std::string& lines) {
  if (lines.empty()) return;
  std::fprintf(stderr, "%s%s", isatty(STDERR_FILENO) ? "\r\033[K" : "", lines.c_str());
  std::fflush(stderr);
}

}  // namespace polyphony::sim
