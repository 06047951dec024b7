#include "exec/wire/liveness.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/system/process.h"
#include "shared/patience.h"

namespace polyphony::exec {

namespace {

constexpr Seconds kHostPatience{3};  // how long the host waits for ranks to read a verdict

const std::string kLost = "lost";    // the verdict: "RANK what happened"; empty until there is one
const std::string kAlarm = "alarm";  // not empty: some rank's call failed
const std::string kRead = "read";    // how many ranks know the verdict
const std::string kDone = "done";    // how many ranks have finished
const std::string kGone = "finished";

std::string beat_key(std::uint32_t rank) { return "beat/" + std::to_string(rank); }

std::vector<std::uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string to_text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

// Shared with the two threads, which may outlive the Liveness object if the store does not answer.
struct Liveness::State {
  c10::intrusive_ptr<c10d::Store> store;
  Rank self;
  std::uint32_t world_size = 0;
  Rank host;
  LivenessOptions options;
  std::function<void()> on_lost, on_look;

  std::atomic<bool> lost{false};
  std::mutex mutex;  // protects the members below, up to beats_done
  std::condition_variable changed;
  bool stop = false, finished = false, alarm = false, verdict_given = false, settled = false;
  std::string own_reason;
  Rank culprit;
  std::string reason;
  Rank suspect;
  std::uint64_t beats_done = 0;
  // Used by the heartbeat thread only.
  std::uint32_t watched = 0;
  std::string seen;
  int silent = 0;
  std::thread beats, guard;

  void beat_until_stopped();
  void watch(std::uint32_t rank);
  void look();
  void give_verdict(Rank rank, const std::string& what);
  void settle();
  void guard_until_stopped();
  void wait_settled(int silence);
  LostPeer loss() const;  // call it with the mutex locked
};

void Liveness::State::watch(std::uint32_t rank) {
  watched = rank;
  seen.clear();
  silent = 0;
  // The watched rank may not have started yet, and reading a missing key would block.
  store->compareSet(beat_key(rank), to_bytes(""), to_bytes(""));
}

// In one round trip, writes the own heartbeat and reads the watched rank's and the common keys.
void Liveness::State::look() {
  const auto values = store->multiGet({kLost, kAlarm, beat_key(watched)});
  const std::string verdict = to_text(values[0]);
  if (!verdict.empty()) {
    const std::size_t blank = verdict.find(' ');
    give_verdict(Rank(std::stoul(verdict.substr(0, blank))), verdict.substr(blank + 1));
    return;
  }
  const std::string sign = to_text(values[2]);
  if (watched == self.value) return;
  if (sign == kGone) return watch((watched + 1) % world_size);
  silent = sign == seen ? silent + 1 : 0;
  seen = sign;
  const bool alarmed = !values[1].empty();
  const int limit = alarmed ? options.alarmed_beats : options.silent_beats;
  if (silent < limit) return;
  const double seconds = silent * options.beat.count();
  char text[96];
  std::snprintf(text, sizeof(text), "%u it gave no sign of life for %.1f s", watched, seconds);
  store->compareSet(kLost, to_bytes(""), to_bytes(text));
}

void Liveness::State::give_verdict(Rank rank, const std::string& what) {
  {
    const std::scoped_lock lock(mutex);
    if (verdict_given) return;
    verdict_given = true;
    culprit = rank;
    reason = what;
    lost = true;
  }
  changed.notify_all();
  on_lost();
}

// The store ends with its host, so the host stays until all other ranks that can have read the
// verdict.
void Liveness::State::settle() {
  constexpr std::chrono::milliseconds kPoll{20};
  try {
    if (self != culprit) store->add(kRead, 1);
    const std::int64_t others = world_size - 1;  // all ranks except the lost one
    Patience patience(kHostPatience, steady_now());
    while (self == host && !patience.over(steady_now()) && store->add(kRead, 0) < others)
      std::this_thread::sleep_for(kPoll);
  } catch (const std::exception&) {
    // The host is gone too; the verdict stands.
  }
  const std::scoped_lock lock(mutex);
  settled = true;
  changed.notify_all();
}

void Liveness::State::beat_until_stopped() {
  be_prompt();
  std::uint64_t count = 0;
  bool alarm_sent = false, reported = false;
  try {
    for (;;) {
      bool send_alarm = false;
      std::string report;
      Rank suspected;
      {
        std::unique_lock lock(mutex);
        ++beats_done;
        changed.notify_all();
        changed.wait_for(lock, options.beat, [&] {
          return stop || finished || (alarm && !alarm_sent) || (!own_reason.empty() && !reported);
        });
        if (stop || finished) break;
        send_alarm = alarm && !alarm_sent;
        report = own_reason;
        suspected = suspect;
      }
      if (!report.empty() && !reported) {
        reported = true;
        store->compareSet(kLost, to_bytes(""), to_bytes(std::to_string(self.value) + " " + report));
      }
      if (send_alarm) {
        alarm_sent = true;
        store->set(kAlarm, to_bytes("raised"));
        if (suspected.valid()) watch(suspected.value);
      }
      store->set(beat_key(self.value), to_bytes(std::to_string(++count)));
      look();
      if (lost) break;
    }
  } catch (const std::exception& error) {
    give_verdict(host, host.valid() ? "the store it hosts is gone"
                                    : std::string("the launcher's store is gone: ") + error.what());
  }
  if (lost) settle();
}

// Ends a process that does not end by itself, and detects a store that neither answers nor closes
// its connection.
void Liveness::State::guard_until_stopped() {
  constexpr std::chrono::milliseconds kLook{200};
  Patience with_store(options.store_silence, steady_now()),
      with_process(options.grace, steady_now());
  std::unique_lock lock(mutex);
  for (std::uint64_t beats_seen = 0;;) {
    changed.wait_for(lock, kLook, [&] { return stop; });
    if (stop) return;
    lock.unlock();
    on_look();
    lock.lock();
    if (beats_seen != beats_done) with_store.restart(steady_now());
    beats_seen = beats_done;
    if (!verdict_given) {
      with_process.restart(steady_now());
      if (finished || !with_store.over(steady_now())) continue;
      lock.unlock();
      give_verdict(host, "the store does not answer");
      lock.lock();
      settled = true;
    }
    if (with_process.over(steady_now())) {
      const LostPeer verdict = loss();
      lock.unlock();
      leave_after(verdict, self);
    }
  }
}

LostPeer Liveness::State::loss() const {
  if (!culprit.valid()) return LostPeer(culprit, reason);
  return LostPeer(culprit, "lost rank " + std::to_string(culprit.value) + ": " + reason);
}

// Waits until all ranks can have read a verdict: `silence` beats of this process (which may be
// starved of processor time), plus one for the alarm and one for the verdict; then for
// kHostPatience.
void Liveness::State::wait_settled(int silence) {
  std::unique_lock lock(mutex);
  const std::uint64_t last = beats_done + static_cast<std::uint64_t>(silence) + 3;
  changed.wait(lock, [&] { return settled || verdict_given || finished || beats_done > last; });
  changed.wait_for(lock, 2 * kHostPatience, [&] { return settled || !verdict_given; });
}

Liveness::Liveness(c10::intrusive_ptr<c10d::Store> store, Rank self, int world_size, Rank host,
                   const LivenessOptions& options, std::function<void()> on_lost,
                   std::function<void()> on_look)
    : state_(std::make_shared<State>()) {
  State& state = *state_;
  state.store = std::move(store);
  state.self = self;
  state.world_size = static_cast<std::uint32_t>(world_size);
  state.host = host;
  state.options = options;
  state.on_lost = std::move(on_lost);
  state.on_look = std::move(on_look);
  // Keys must exist before any rank reads them.
  state.store->compareSet(kLost, to_bytes(""), to_bytes(""));
  state.store->compareSet(kAlarm, to_bytes(""), to_bytes(""));
  state.store->set(beat_key(self.value), to_bytes("0"));
  state.watch((self.value + 1) % state.world_size);
  state.beats = std::thread([shared = state_] { shared->beat_until_stopped(); });
  state.guard = std::thread([shared = state_] { shared->guard_until_stopped(); });
}

Liveness::~Liveness() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  if (state_->lost) {
    state_->beats.detach();
  } else {
    state_->beats.join();
  }
  state_->guard.join();
}

const std::atomic<bool>& Liveness::lost() const { return state_->lost; }

LostPeer Liveness::explain(Rank suspect, const std::string& what) {
  State& state = *state_;
  {
    const std::scoped_lock lock(state.mutex);
    state.alarm = true;
    if (suspect != state.self) state.suspect = suspect;
  }
  state.changed.notify_all();
  state.wait_settled(state.options.alarmed_beats);
  const std::scoped_lock lock(state.mutex);
  if (!state.verdict_given) return LostPeer(suspect, what);
  return state.loss();
}

void Liveness::report(const std::string& reason) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->own_reason = reason.empty() ? "it stopped" : "it stopped: " + reason;
  }
  state_->changed.notify_all();
  state_->wait_settled(1);
}

void Liveness::finish() {
  State& state = *state_;
  if (state.lost) return;
  try {
    state.store->set(beat_key(state.self.value), to_bytes(kGone));
    {
      const std::scoped_lock lock(state.mutex);
      state.finished = state.self != state.host;  // the host's thread beats on while it waits
    }
    state.changed.notify_all();
    state.store->add(kDone, 1);
    constexpr std::chrono::milliseconds kPoll{10};
    while (state.self == state.host && !state.lost &&
           state.store->add(kDone, 0) < static_cast<std::int64_t>(state.world_size)) {
      std::this_thread::sleep_for(kPoll);
    }
  } catch (const std::exception&) {
    // Another rank's end took the store away: nothing is left to do for this one.
  }
}

void leave_after(const LostPeer& loss, Rank self) {
  std::fprintf(stderr, "rank %u: %s\n", self.value, loss.what());
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace polyphony::exec
