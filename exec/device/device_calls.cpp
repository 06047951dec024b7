#include "exec/device/device_calls.h"

#include <c10/core/Event.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/device/announced_groups.h"
#include "exec/gloo/gloo_context.h"
#include "exec/system/process.h"
#include "exec/wire/store.h"

namespace polyphony::exec {

namespace {

// What a transport has made and begun, to be aborted together.
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
  // Nothing is made after it.
  void abort() {
    const std::scoped_lock lock(mutex_);
    aborted_ = true;
    for (const auto& weak : families_)
      if (const FamilyPointer family = weak.lock()) family->abort();
    for (const MadeGroup& group : groups_) group.backend->abort();
    families_.clear();
    groups_.clear();
  }
  // Asks the groups now and then whether something has gone wrong in one by itself, however often it is called, and not
  // while another thread makes or aborts some.
  void look() {
    constexpr Seconds kBetween{0.1};  // as often as others look for lost peers (Liveness)
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
  }
  bool wrong() const { return wrong_; }
  // LostPeer when it has.
  void check(GlooContext& context) {
    if (!wrong_) return;
    heard_ = true;
    throw context.liveness->explain(Rank(), error_);
  }
  // Of the thread that looks several times a second. A host that has queued all that a GPU takes waits inside CUDA for
  // the kernel that will not end, and hears of nothing: then the groups are aborted from here.
  void watch() {
    constexpr int kLooks = 10;  // a host that waits here hears of it in half of one
    look();
    if (wrong_ && !heard_ && ++unheard_ == kLooks) abort();
  }

 private:
  std::mutex mutex_;
  bool aborted_ = false;
  std::vector<MadeGroup> groups_;
  Seconds looked_{};
  int unheard_ = 0;  // looks; of watch()
  std::atomic<bool> wrong_{false}, heard_{false};
  std::string error_;  // once wrong_
  std::vector<std::weak_ptr<DeviceFamily>> families_;
};

std::string described(const DevicePart& part) {
  constexpr std::size_t kMost = 8;  // every rank says it
  const std::size_t ranks = part.members.size();
  if (ranks == 0) return part.name;
  if (ranks <= kMost) return part.name + " of ranks " + words(part.members);
  return part.name + " of ranks " +
         words({part.members.begin(), part.members.begin() + std::ptrdiff_t{kMost}}) + " and " +
         std::to_string(ranks - kMost) + " more";
}

// A family whose members say that they are here, so that those who are not can be named; its groups are added to what
// is aborted.
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
                     "not connected, for want of rank " + words(missing));
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
  DevicePart mine_;  // in the split that was begun last
  bool met_ = false;
};

void await(GlooContext& context, Made& made, const c10::Event& done) {
  constexpr std::chrono::microseconds kLook{20};
  guarded(context, "waiting for the GPU", [&] {
    Patience patience(context.options.timeout, steady_now());
    while (!done.query()) {
      if (context.liveness->lost() || patience.over(steady_now()))
        throw LostPeer(Rank(), "not ended");
      made.look();
      if (made.wrong()) return;
      std::this_thread::sleep_for(kLook);
    }
  });
  made.check(context);  // what is done after an abort is not what was waited for
}

}  // namespace

DeviceCalls device_calls(Transport& gloo, torch::Device device, const BeginFamily& begin,
                         const std::function<void(const std::function<void()>&)>& together) {
  const std::shared_ptr<GlooContext> context = context_of(gloo);
  const auto made = std::make_shared<Made>();
  {
    const std::scoped_lock lock(context->mutex);
    context->watch = [made] { made->watch(); };
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
          if (context->liveness->lost()) throw LostPeer(Rank(), "not begun");
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
          [made] { made->abort(); }};
}

}  // namespace polyphony::exec
