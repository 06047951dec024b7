#include "sim/launching/launch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "shared/error.h"
#include "shared/patience.h"
#include "sim/console/signal_counter.h"
#include "sim/launching/rank_process.h"
#include "sim/launching/rank_talk.h"

namespace polyphony::sim {
namespace {

// Follows one launch from the start of the first rank to the end of the last.
class Watch {
 public:
  Watch(const LaunchOptions& options, std::vector<Child>& children, int output)
      : options_(options), children_(children), output_(output) {}

  LaunchResult until_all_ended() {
    for (std::size_t running = children_.size(); running > 0;) {
      if (Child* ended = reap(children_)) {
        --running;
        take_end(*ended);
        continue;
      }
      look();
      if (options_.tick) options_.tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(options_.tick ? 200 : 20));
    }
    result_.output += drain(output_);
    say(talk_.take(now(), true));
    if (cause_) explain();
    return std::move(result_);
  }

 private:
  static Seconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }
  std::size_t rank_of(const Child& child) const {
    return static_cast<std::size_t>(&child - children_.data());
  }

  void take_end(Child& child) {
    const std::size_t rank = rank_of(child);
    talk_.hear(rank, drain(child.talk), true, now());
    child.blames = !talk_.loss(rank).empty();
    if (child.failed() && !grace_) grace_.emplace(options_.grace, now());
    if (child.severity() <= (cause_ ? cause_->severity() : 0)) return;
    cause_ = &child;
    if (!child.refused()) return;
    talk_.listen_only_to(rank);
    if (!refused_) refused_.emplace(kToRefuse, now());
  }

  void look() {
    result_.output += drain(output_);
    for (const Child& child : children_)
      if (child.running) talk_.hear(rank_of(child), drain(child.talk), false, now());
    say(talk_.take(now()));
    if (SignalCounter::seen() > passed_on_) {
      result_.interrupted = true;
      kill_running(children_, passed_on_ == 0 ? SIGTERM : SIGKILL);
      passed_on_ = SignalCounter::seen();
      if (!grace_) grace_.emplace(options_.grace, now());
    }
    if (refused_ && refused_->over(now())) {
      refused_.reset();
      kill_running(children_, SIGTERM);
    }
    if (!grace_) return;
    if (grace_->over(now())) kill_running(children_, SIGKILL);
    const bool all_lost = std::all_of(children_.begin(), children_.end(), [&](const Child& child) {
      return !child.running || talk_.lost(rank_of(child));
    });
    if (!announced_ && options_.grace - grace_->left() >= (all_lost ? RankTalk::kHold : kToLeave))
      announce();
  }

  // Lists the ranks that still run after the others exited, and what happens next.
  void announce() {
    announced_ = true;
    if (cause_ && cause_->refused()) return;
    std::string ranks;
    for (const Child& child : children_)
      if (child.running) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank_of(child));
    const bool many = ranks.find(',') != std::string::npos;
    say(options_.label + ": " + (many ? "ranks " : "rank ") + ranks + (many ? " have" : " has") +
        " not ended yet: killed in " +
        std::to_string(static_cast<int>(std::ceil(grace_->left().count()))) +
        " s, or at once by Ctrl-C" + (result_.interrupted ? "" : " twice") + hint() + "\n");
  }

  std::string hint() const { return options_.way_on ? "; " + options_.way_on() : std::string(); }

  void explain() {
    const std::size_t rank = rank_of(*cause_);
    result_.exit_code = WIFEXITED(cause_->status) ? WEXITSTATUS(cause_->status)
                                                  : static_cast<int>(ExitCode::failed);
    if (result_.interrupted && (talk_.stopped(rank) || cause_->stopped())) {
      result_.what = "interrupted" + hint();
      return;
    }
    // A rank that hangs is the cause, but ends last, killed by the launcher: report the loss that
    // other ranks noticed.
    if (cause_->severity() == 1 && cause_->blames)
      result_.what = talk_.loss(rank) + hint();
    else if (!cause_->refused())
      result_.what = "rank " + std::to_string(rank) + " " + cause_->ending() + hint();
  }

  // Time after one rank refused its input for the others to do the same; they may wait for it
  // instead.
  static constexpr Seconds kToRefuse{3};
  // Time for ranks to notice a loss and exit; 3.5 s are usual (exec/wire/liveness.h).
  static constexpr Seconds kToLeave{8};

  const LaunchOptions& options_;
  std::vector<Child>& children_;
  int output_;
  RankTalk talk_;
  LaunchResult result_;
  std::optional<Patience> grace_, refused_;
  int passed_on_ = 0;
  bool announced_ = false;
  const Child* cause_ = nullptr;
};

}  // namespace

std::string find_worker() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path worker = here / "polyphony-worker";
  if (!std::filesystem::exists(worker))
    throw InputError(worker.string(), "", "is not there",
                     "build the executor half: cmake --workflow --preset release");
  return worker.string();
}

NoAnswer no_answer(const LaunchResult& result, const std::string& label) {
  const std::string what = !result.what.empty() ? result.what
                           : result.interrupted ? "interrupted"
                                                : "a rank refused, and said why on stderr";
  NoAnswer error(result.exit_code ? static_cast<ExitCode>(result.exit_code) : ExitCode::failed,
                 label, "", what);
  error.said = result.what.empty() && !result.interrupted;
  return error;
}

LaunchResult launch(const LaunchOptions& options) {
  const SignalCounter counter({SIGINT, SIGTERM}, SignalCounter::Second::counts);
  const PipeEnds output = make_pipe();
  std::vector<Child> children;
  const Reaper reaper(children);
  start_ranks(options.command, output.write, children);
  close(output.write);
  LaunchResult result = Watch(options, children, output.read).until_all_ended();
  close(output.read);
  return result;
}

}  // namespace polyphony::sim
