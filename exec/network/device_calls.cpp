#include "exec/network/device_calls.h"

#include <c10/core/Event.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "exec/network/gloo_context.h"
#include "exec/network/store.h"
#include "exec/system/process.h"

namespace polyphony::exec {

namespace {

// What a transport has made and begun, to be aborted together.
class Made {
 public:
  DeviceBackend add(DeviceBackend group) {
    const std::scoped_lock lock(mutex_);
    if (aborted_) group->abort();
    groups_.push_back(group);
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
    for (const DeviceBackend& group : groups_) group->abort();
    families_.clear();
    groups_.clear();
  }

 private:
  std::mutex mutex_;
  bool aborted_ = false;
  std::vector<DeviceBackend> groups_;
  std::vector<std::weak_ptr<DeviceFamily>> families_;
};

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
      std::string text = "not connected, for want of rank";
      for (const Rank rank : missing) text += " " + std::to_string(rank.value);
      throw LostPeer(missing.size() == 1 ? missing.front() : Rank(), text);
    }
  }
  void split(const DevicePart& mine) override { inner_->split(mine); }
  DeviceBackend part() override {
    DeviceBackend group = inner_->part();
    return group ? made_->add(std::move(group)) : group;
  }
  void abort() override { inner_->abort(); }

 private:
  std::shared_ptr<GlooContext> context_;
  std::shared_ptr<Made> made_;
  FamilyPointer inner_;
  std::string key_;
  std::vector<Rank> members_;
  bool met_ = false;
};

void await(GlooContext& context, const c10::Event& done) {
  constexpr std::chrono::microseconds kLook{20};
  guarded(context, "waiting for the GPU", [&] {
    Patience patience(context.options.timeout, steady_now());
    while (!done.query()) {
      if (context.liveness->lost() || patience.over(steady_now()))
        throw LostPeer(Rank(), "not ended");
      std::this_thread::sleep_for(kLook);
    }
  });
}

}  // namespace

DeviceCalls device_calls(Transport& gloo, torch::Device device, const BeginFamily& begin,
                         const std::function<void(const std::function<void()>&)>& together) {
  const std::shared_ptr<GlooContext> context = context_of(gloo);
  const auto made = std::make_shared<Made>();
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
        guarded(*context, where, [&] {
          const GlooContext::Waiting waiting(*context, [made] { made->abort(); });
          if (context->liveness->lost()) throw LostPeer(Rank(), "not begun");
          call();
        });
      },
      together};
  return {making, [=](const c10::Event& event) { await(*context, event); },
          [made] { made->abort(); }};
}

}  // namespace polyphony::exec
