// Families of queued devices, and the host's waits (tests/exec/device_double/queued_backend.h).
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "exec/system/process.h"
#include "tests/exec/device_double/meeting.h"
#include "tests/exec/device_double/queued_backend.h"

namespace polyphony::exec::testing {

namespace queued {

namespace {

std::atomic<double> delay{0};  // seconds

// Calls that run together: what waits for other hosts, and what comes after all of them.
struct Together {
  std::vector<std::function<void()>> waits, works;
};
thread_local Together* together = nullptr;

// What all members of a family share.
class Gathering {
 public:
  Gathering(std::string name, int size, Seconds patience)
      : name_(std::move(name)), size_(static_cast<std::size_t>(size)), patience_(patience) {}

  // The member comes to the call of this number; 0 is the family itself.
  void come(std::size_t number, int member, const DevicePart& part) {
    const std::scoped_lock lock(mutex_);
    if (calls_.size() <= number) calls_.resize(number + 1);
    Call& call = calls_[number];
    call.parts.resize(size_);
    call.parts[static_cast<std::size_t>(member)] = part;
    call.chain = std::max(call.chain, host_waits() + 1);
    if (++call.came < size_) return;
    if (number > 0) call.error = wrong(call);
    call.done = steady_now() + delay_of_host_waits();
    call.backends = meetings(call);
  }
  bool done(std::size_t number, Seconds since) {
    const std::scoped_lock lock(mutex_);
    const Call& call = calls_[number];
    const std::string where =
        "family " + name_ + (number > 0 ? ", split " + std::to_string(number) : "") + ": ";
    if (call.came < size_) {
      if (steady_now() - since < patience_) return false;
      std::string absent;
      for (std::size_t member = 0; member < size_; ++member)
        if (!call.parts[member]) absent += " " + std::to_string(member);
      throw std::runtime_error(where + "without" + absent);
    }
    if (!call.error.empty()) throw std::runtime_error(where + call.error);
    if (steady_now() < call.done) return false;
    host_waits() = std::max(host_waits(), call.chain);
    return true;
  }
  std::shared_ptr<Meeting> meeting(std::size_t number, int color) {
    const std::scoped_lock lock(mutex_);
    return calls_[number].backends.at(color);
  }
  int splits() {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(calls_.size()) - 1;
  }
  const std::string& name() const { return name_; }

 private:
  struct Call {
    std::vector<std::optional<DevicePart>> parts;
    std::size_t came = 0;
    int chain = 0;
    Seconds done{};
    std::string error;
    std::map<int, std::shared_ptr<Meeting>> backends;  // by color
  };

  std::string wrong(const Call& call) const {
    std::map<int, std::vector<std::size_t>> groups;
    for (std::size_t member = 0; member < size_; ++member)
      if (call.parts[member]->color >= 0) groups[call.parts[member]->color].push_back(member);
    for (const auto& [color, members] : groups) {
      const DevicePart& first = *call.parts[members.front()];
      for (std::size_t i = 0; i < members.size(); ++i) {
        const DevicePart& part = *call.parts[members[i]];
        if (part.name != first.name || part.size != first.size)
          return "member " + std::to_string(members[i]) + " makes " + part.name + ", member " +
                 std::to_string(members.front()) + " " + first.name + " with the same color";
      }
      if (members.size() != static_cast<std::size_t>(first.size))
        return first.name + " has " + std::to_string(members.size()) + " members instead of " +
               std::to_string(first.size);
    }
    return {};
  }
  std::map<int, std::shared_ptr<Meeting>> meetings(const Call& call) const {
    std::map<int, std::shared_ptr<Meeting>> made;
    for (const auto& part : call.parts)
      if (part->color >= 0 && !made.contains(part->color))
        made[part->color] = std::make_shared<Meeting>(part->name, part->size, patience_);
    return made;
  }

  std::string name_;
  std::size_t size_;
  Seconds patience_;
  std::mutex mutex_;
  std::vector<Call> calls_;
};

class Gatherings {
 public:
  std::shared_ptr<Gathering> find(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return all_[name].lock();
  }
  std::shared_ptr<Gathering> find_or_make(const std::string& name, int size, Seconds patience) {
    const std::scoped_lock lock(mutex_);
    auto found = all_[name].lock();
    if (!found) all_[name] = found = std::make_shared<Gathering>(name, size, patience);
    return found;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Gathering>> all_;
};

Gatherings& gatherings() {
  static Gatherings all;
  return all;
}

class QueuedFamily : public DeviceFamily {
 public:
  QueuedFamily(std::shared_ptr<Gathering> gathering, int member, torch::Device device)
      : gathering_(std::move(gathering)), member_(member), device_(device) {
    gathering_->come(0, member, {});
  }
  bool ready() override {
    if (aborted_) throw std::runtime_error("family " + gathering_->name() + " was aborted");
    return gathering_->done(number_, since_);
  }
  void split(const DevicePart& mine) override {
    mine_ = mine;
    since_ = steady_now();
    gathering_->come(++number_, member_, mine);
  }
  DeviceBackend part() override {
    if (mine_.color < 0) return {};
    return backend_of(gathering_->meeting(number_, mine_.color), mine_.index, mine_.size, device_);
  }
  void abort() override { aborted_ = true; }

 private:
  std::shared_ptr<Gathering> gathering_;
  int member_;
  torch::Device device_;
  std::size_t number_ = 0;
  Seconds since_ = steady_now();
  DevicePart mine_;
  std::atomic<bool> aborted_{false};
};

}  // namespace

int& host_waits() {
  thread_local int chain = 0;
  return chain;
}

Seconds delay_of_host_waits() { return Seconds(delay.load()); }

void host_wait(std::function<void()> wait) {
  if (together != nullptr) return together->waits.push_back(std::move(wait));
  wait();
  std::this_thread::sleep_for(delay_of_host_waits());
}

void after_host_waits(std::function<void()> work) {
  if (together != nullptr) return together->works.push_back(std::move(work));
  work();
}

}  // namespace queued

FamilyPointer queued_family(const std::string& name, int index, int size, torch::Device device,
                            Seconds patience) {
  return std::make_shared<queued::QueuedFamily>(
      queued::gatherings().find_or_make(name, size, patience), index, device);
}

void queued_together(const std::function<void()>& calls) {
  queued::Together all;
  queued::together = &all;
  try {
    calls();
  } catch (...) {
    queued::together = nullptr;
    throw;
  }
  queued::together = nullptr;
  for (const auto& wait : all.waits) wait();
  if (!all.waits.empty()) std::this_thread::sleep_for(queued::delay_of_host_waits());
  for (const auto& work : all.works) work();
}

int chain_of_host_waits() { return queued::host_waits(); }
void delay_host_waits(Seconds time) { queued::delay = time.count(); }
int splits_of(const std::string& family) {
  const auto found = queued::gatherings().find(family);
  return found ? found->splits() : 0;
}

}  // namespace polyphony::exec::testing
