#include "exec/device/device_calls.h"

#include <c10/core/Event.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "exec/device/announced_groups.h"
#include "exec/gloo/gloo_context.h"
#include "exec/system/process.h"
#include "exec/wire/store.h"

namespace polyphony::exec {

namespace {

// The groups that a transport has made and the families that it has begun, which are aborted
// together.
class Made {
 public:
  DeviceBackend add(const std::string& name, DeviceBackend group) {
    const std::scoped_lock lock(mutex_);
    if (aborted_) group->abort();
    groups_.push_back({name, group});
    return group;
  }
  void add(const FamilyPointer& family) {
    const std::scoped_lock lock(mutex_);
    if (aborted_) family->abort();
    std::erase_if(families_, [](const auto& other) { return other.expired(); });
    families_.push_back(family);
  }
  // Aborts all of them; groups and families that are added later are aborted at once.
  void abort() {
    const std::scoped_lock lock(mutex_);
    aborted_ = true;
    for (const auto& weak : families_)
      if (const FamilyPointer family = weak.lock()) family->abort();
    for (const MadeGroup& group : groups_) group.backend->abort();
    families_.clear();
    groups_.clear();
  }
  // Polls the groups for errors of their own. However often it is called, it does so at most every
  // kBetween, and not while another thread makes or aborts groups.
  void look() {
    constexpr Seconds kBetween{0.1};  // as often as Liveness calls on_look
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || wrong_ || steady_now() - looked_ < kBetween) return;
    looked_ = steady_now();
    for (const MadeGroup& group : groups_) {
      error_ = group.backend->own_error();
      if (error_.empty()) continue;
      error_ = group.name + ": " + error_;
      wrong_ = true;
      return;
    }
    look_for_progress();
  }
  // Sets what is watched. `place` is not called any more once this has returned; `unended` may be.
  void watch_progress(std::function<std::uint64_t()> place, std::function<std::string()> unended,
                      Seconds timeout) {
    const std::scoped_lock lock(mutex_);
    place_ = std::move(place);
    unended_ = std::move(unended);
    timeout_ = timeout;
    patience_.reset();
  }
  bool wrong() const { return wrong_; }
  // Throws LostPeer if a group has reported an error.
  void check(GlooContext& context) {
    if (!wrong_) return;
    heard_ = true;
    throw context.liveness->explain(Rank(), error_);
  }
  // Called several times a second by the thread that watches for lost peers. A host thread that has
  // filled the GPU's queue waits inside CUDA for a kernel that never ends, and does not notice the
  // error, or that a peer was lost: then the groups are aborted from here, by a thread of their
  // own, because the library may hold a lock.
  static void watch(const std::shared_ptr<Made>& made, bool lost) {
    constexpr int kLooks = 10;  // a host thread that waits in await() notices within half a period
    made->look();
    if (((made->wrong_ && !made->heard_) || (lost && made->inside_an_op())) &&
        ++made->unheard_ == kLooks)
      std::thread([made] { made->abort(); }).detach();
  }

 private:
  // Where it waits outside its ops, the host itself notices that a peer was lost, and records what
  // its device has begun before it aborts.
  bool inside_an_op() {
    const std::scoped_lock lock(mutex_);
    return place_ && place_() % 2 == 1;
  }
  // Under the lock. Finds a host that stays inside an op.
  void look_for_progress() {
    if (report_) return end_report();
    if (!place_) return;
    const std::uint64_t place = place_();
    if (place % 2 == 0 || place != last_place_ || !patience_) {
      last_place_ = place;
      patience_.emplace(timeout_, steady_now());
      return;
    }
    if (!patience_->over(steady_now())) return;
    // The device is asked in a thread of its own, too.
    report_ = std::make_shared<Report>();
    std::thread([report = report_, unended = unended_] {
      std::string text;
      try {
        text = unended();
      } catch (const std::exception&) {
      }
      const std::scoped_lock lock(report->mutex);
      report->text = text;
      report->came = true;
    }).detach();
    patience_.emplace(kReport, steady_now());
  }
  // Under the lock.
  void end_report() {
    std::string begun;
    {
      const std::scoped_lock lock(report_->mutex);
      if (!report_->came && !patience_->over(steady_now())) return;
      begun = report_->text;
    }
    std::ostringstream text;
    text << "the host has been inside one op for " << timeout_.count()
         << " s, where a call of the device's library does not return" << begun;
    error_ = text.str();
    wrong_ = true;
  }

  static constexpr Seconds kReport{2};  // how long the device may take to say what it has begun
  struct Report {
    std::mutex mutex;
    std::string text;
    bool came = false;
  };
  std::shared_ptr<Report> report_;
  std::mutex mutex_;
  bool aborted_ = false;
  std::vector<MadeGroup> groups_;
  std::function<std::uint64_t()> place_;
  std::function<std::string()> unended_;
  Seconds timeout_{};
  std::uint64_t last_place_ = 0;
  std::optional<Patience> patience_;  // with the place where the host is
  Seconds looked_{};
  int unheard_ = 0;  // calls of watch() since the error that no other thread has noticed
  std::atomic<bool> wrong_{false}, heard_{false};
  std::string error_;  // set before wrong_
  std::vector<std::weak_ptr<DeviceFamily>> families_;
};

std::string described(const DevicePart& part) {
  constexpr std::size_t kMost = 8;  // limits the text, because every rank prints it
  const std::size_t ranks = part.members.size();
  if (ranks == 0) return part.name;
  if (ranks <= kMost) return part.name + " of ranks " + words(part.members);
  return part.name + " of ranks " +
         words({part.members.begin(), part.members.begin() + std::ptrdiff_t{kMost}}) + " and " +
         std::to_string(ranks - kMost) + " more";
}

// A family whose members register in the store, so that an error can name the missing ones. Its
// groups are added to `made`, which aborts them.
class WatchedFamily : public DeviceFamily {
 public:
  WatchedFamily(std::shared_ptr<GlooContext> context, std::shared_ptr<Made> made,
                FamilyPointer inner, std::string key, std::vector<Rank> members)
      : context_(std::move(context)),
        made_(std::move(made)),
        inner_(std::move(inner)),
        key_(std::move(key)),
        members_(std::move(members)) {}

  bool ready() override {
    try {
      const bool done = inner_->ready();
      met_ = met_ || done;
      return done;
    } catch (const std::exception&) {
      if (met_ || context_->liveness->lost()) throw;
      std::vector<Rank> missing;
      for (const Rank member : members_)
        if (!context_->store->check({key_ + std::to_string(member.value)}))
          missing.push_back(member);
      if (missing.empty()) throw;
      throw LostPeer(missing.size() == 1 ? missing.front() : Rank(),
                     "not connected, missing rank " + words(missing));
    }
  }
  void split(const DevicePart& mine) override {
    mine_ = mine;
    inner_->split(mine);
  }
  DeviceBackend part() override {
    DeviceBackend group = inner_->part();
    return group ? made_->add(described(mine_), std::move(group)) : group;
  }
  void abort() override { inner_->abort(); }

 private:
  std::shared_ptr<GlooContext> context_;
  std::shared_ptr<Made> made_;
  FamilyPointer inner_;
  std::string key_;
  std::vector<Rank> members_;
  DevicePart mine_;  // this rank's part in the latest split
  bool met_ = false;
};

void await(GlooContext& context, Made& made, const c10::Event& done) {
  constexpr std::chrono::microseconds kLook{20};
  guarded(context, "waiting for the GPU", [&] {
    Patience patience(context.options.timeout, steady_now());
    while (!done.query()) {
      if (context.liveness->lost() || patience.over(steady_now()))
        throw LostPeer(Rank(), "it did not finish in time");
      made.look();
      if (made.wrong()) return;
      std::this_thread::sleep_for(kLook);
    }
  });
  made.check(context);  // after an abort the event is reached, but its work was not done
}

}  // namespace

DeviceCalls device_calls(Transport& gloo, torch::Device device, const BeginFamily& begin,
                         const std::function<void(const std::function<void()>&)>& together) {
  const std::shared_ptr<GlooContext> context = context_of(gloo);
  const auto made = std::make_shared<Made>();
  {
    const std::scoped_lock lock(context->mutex);
    // Not through the context's pointer, which is reset while this may still be called.
    context->watch = [made, lost = &context->liveness->lost()] { Made::watch(made, *lost); };
  }
  const DeviceMaking making{
      device,
      [=](const std::string& name, const std::vector<Rank>& members, int index) {
        const std::string key = "device/" + name + "/";
        const auto family = std::make_shared<WatchedFamily>(
            context, made, begin(context->store, name, index, static_cast<int>(members.size())),
            key, members);
        set_text(*context->store,
                 key + std::to_string(members[static_cast<std::size_t>(index)].value), "here");
        made->add(family);
        return family;
      },
      [=](const std::string& where, const std::function<void()>& call) {
        made->check(*context);
        guarded(*context, where, [&] {
          const GlooContext::Waiting waiting(*context, [made] { made->abort(); });
          if (context->liveness->lost()) throw LostPeer(Rank(), "not begun, a peer was lost");
          try {
            call();
          } catch (const std::exception&) {
            made->check(*context);  // it may have failed because watch() aborted it
            throw;
          }
        });
      },
      together};
  return {making, [=](const c10::Event& event) { await(*context, *made, event); },
          [made] { made->abort(); },
          [context, made](auto place, auto unended) {
            // Later than await(), which says more, if the host is inside that.
            constexpr double kLater = 1.25;
            made->watch_progress(std::move(place), std::move(unended),
                                 kLater * context->options.timeout);
          }};
}

}  // namespace polyphony::exec
