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

// The groups of a transport, to be aborted together.
class Groups {
 public:
  DeviceBackend add(DeviceBackend group) {
    const std::scoped_lock lock(mutex_);
    groups_.push_back(group);
    return group;
  }
  void abort() {
    const std::scoped_lock lock(mutex_);
    for (const DeviceBackend& group : groups_) group->abort();
    groups_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<DeviceBackend> groups_;
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

DeviceCalls device_calls(Transport& gloo, torch::Device device, const MakeBackend& make) {
  const std::shared_ptr<GlooContext> context = context_of(gloo);
  const auto groups = std::make_shared<Groups>();
  return {device,
          [=](const std::string& name, int index, int size) {
            return groups->add(connected(context, [=](const GlooContext& shared) {
              return make(shared.store, name, index, size);
            }));
          },
          [=](const std::string& where, const std::function<void()>& call) {
            guarded(*context, where, [&] {
              const GlooContext::Waiting waiting(*context, [groups] { groups->abort(); });
              if (context->liveness->lost()) throw LostPeer(Rank(), "not begun");
              call();
            });
          },
          [=](const c10::Event& event) { await(*context, event); }, [groups] { groups->abort(); }};
}

}  // namespace polyphony::exec
