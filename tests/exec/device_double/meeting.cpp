#include "tests/exec/device_double/meeting.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace polyphony::exec::testing::queued {

namespace {

std::string list_of(const std::vector<int>& members) {
  std::string text = members.size() == 1 ? "member" : "members";
  for (const int member : members) text += " " + std::to_string(member);
  return text;
}

// A kernel's turn, from here to the end of the scope.
class OnBoard {
 public:
  explicit OnBoard(GroupKernel& kernel) : kernel_(kernel) {}
  ~OnBoard() { board().leave(kernel_); }
  OnBoard(const OnBoard&) = delete;
  OnBoard& operator=(const OnBoard&) = delete;

 private:
  GroupKernel& kernel_;
};

}  // namespace

Meeting::Meeting(std::string name, int size, Seconds patience)
    : name_(std::move(name)),
      size_(size),
      patience_(patience),
      aborted_(static_cast<std::size_t>(size)),
      errors_(static_cast<std::size_t>(size)),
      devices_(static_cast<std::size_t>(size)) {}

GroupKernel Meeting::kernel(int member, Queue* stream, const std::string& what) const {
  return {stream, devices_[static_cast<std::size_t>(member)], what + " of group " + name_};
}

void Meeting::wait(Lock& lock, int member, const GroupKernel* kernel,
                   const std::function<bool()>& comes,
                   const std::function<std::string()>& missing) {
  const bool ended = board().changed.wait_for(lock, patience_, [&] {
    return aborted(member) || comes() || (kernel != nullptr && board().dead.contains(kernel));
  });
  if (kernel != nullptr) board().throw_if_dead(*kernel);
  if (!ended) throw std::runtime_error("group " + name_ + ": " + missing());
}

bool Meeting::broke(Lock& lock, int member, const GroupKernel& kernel) {
  const auto found = board().breaks.find(kernel.device);
  if (found == board().breaks.end() || name_.find(found->second.group) == std::string::npos)
    return false;
  errors_[static_cast<std::size_t>(member)] = found->second.words;
  board().breaks.erase(found);
  wait(lock, member, &kernel, [] { return false; }, [] { return "broken, and not aborted"; });
  return true;
}

void Meeting::join(int member, torch::Device device) {
  const std::scoped_lock lock(board().mutex);
  devices_[static_cast<std::size_t>(member)] = device.index();
}

void Meeting::connect(int member, const std::vector<Message>& messages) {
  std::vector<Message> fresh;
  {
    const std::scoped_lock lock(board().mutex);
    for (const Message& message : messages)
      if (ends_.try_emplace({message.from, message.to, message.sends}, host_waits() + 1).second)
        fresh.push_back(message);
  }
  board().changed.notify_all();
  if (fresh.empty()) return;
  host_wait([this, member, fresh] { await_ends(member, fresh); });
}

void Meeting::await_ends(int member, const std::vector<Message>& messages) {
  Lock lock(board().mutex);
  for (const Message& message : messages) {
    const auto other = [&] { return ends_.find({message.from, message.to, !message.sends}); };
    wait(
        lock, member, nullptr, [&] { return other() != ends_.end(); },
        [&] {
          return "the first message from " + std::to_string(message.from) + " to " +
                 std::to_string(message.to) + " has one end";
        });
    if (aborted(member)) throw std::runtime_error("group " + name_ + " was aborted");
    host_waits() =
        std::max({host_waits(), other()->second, ends_[{message.from, message.to, message.sends}]});
  }
}

void Meeting::connect_all(int member, const std::string& kind) {
  {
    const std::scoped_lock lock(board().mutex);
    if (!kinds_[kind].try_emplace(member, host_waits() + 1).second) return;
  }
  board().changed.notify_all();
  host_wait([this, member, kind] {
    Lock lock(board().mutex);
    const std::map<int, int>& came = kinds_[kind];
    wait(
        lock, member, nullptr, [&] { return came.size() == static_cast<std::size_t>(size_); },
        [&] {
          return "the first " + kind + " has " + std::to_string(came.size()) + " of " +
                 std::to_string(size_) + " members";
        });
    if (aborted(member)) throw std::runtime_error("group " + name_ + " was aborted");
    for (const auto& [other, chain] : came) host_waits() = std::max(host_waits(), chain);
  });
}

void Meeting::call_queued(int member, std::int64_t number, const c10::Stream& stream) {
  const std::scoped_lock lock(board().mutex);
  calls_queued_[{member, number}] = &queue(stream.device(), stream.id());
  board().look();
}

void Meeting::messages_queued(const std::vector<Message>& messages, const c10::Stream& stream) {
  const std::scoped_lock lock(board().mutex);
  for (const Message& message : messages)
    messages_queued_[{message.from, message.to, message.sends, message.number}] =
        &queue(stream.device(), stream.id());
  board().look();
}

std::string Meeting::missing(const Call& call) const {
  std::vector<int> list;
  for (int member = 0; member < size_; ++member)
    if (!call.parts[static_cast<std::size_t>(member)]) list.push_back(member);
  return list_of(list);
}

void Meeting::meet(std::int64_t number, int member, Part part,
                   const std::function<void(Parts&)>& run) {
  Lock lock(board().mutex);
  const std::string what = part.what;
  GroupKernel kernel = this->kernel(member, calls_queued_.at({member, number}),
                                    what + ", call " + std::to_string(number));
  Call& call = calls_[number];
  if (call.parts.empty()) call.parts.resize(static_cast<std::size_t>(size_));
  kernel.missing = [&] {
    std::vector<Queue*> streams;
    for (int other = 0; other < size_ && !call.done; ++other)
      if (const auto queued = calls_queued_.find({other, number});
          other != member && !call.parts[static_cast<std::size_t>(other)] &&
          queued != calls_queued_.end())
        streams.push_back(queued->second);
    return streams;
  };
  const OnBoard turn(kernel);
  if (!board().take_slot(lock, kernel, [&] { return aborted(member); })) return;
  if (broke(lock, member, kernel)) return;
  call.parts[static_cast<std::size_t>(member)] = std::move(part);
  ++call.came;
  for (const auto& other : call.parts)
    if (other && other->what != what)
      call.error = "group " + name_ + ", call " + std::to_string(number) + ": member " +
                   std::to_string(member) + " calls " + what + ", another " + other->what;
  if (call.came == size_ && call.error.empty()) {
    run(call.parts);
    call.done = true;
  }
  board().changed.notify_all();
  board().look();
  wait(
      lock, member, &kernel, [&] { return call.done || !call.error.empty(); },
      [&] {
        return missing(call) + " did not come to " + what + ", call " + std::to_string(number);
      });
  if (!call.error.empty()) throw std::runtime_error(call.error);
  if (!call.done) {  // aborted: what it brought is gone
    call.parts[static_cast<std::size_t>(member)].reset();
    --call.came;
    return;
  }
  calls_queued_.erase({member, number});
  if (++call.left == size_) calls_.erase(number);
}

void Meeting::move(int member, const std::vector<Message>& messages) {
  Lock lock(board().mutex);
  const Message& one = messages.front();
  GroupKernel kernel =
      this->kernel(member, messages_queued_.at({one.from, one.to, one.sends, one.number}),
                   (one.sends ? "send " : "receive ") + std::to_string(one.number));
  const auto mail_of = [&](const Message& message) -> Mail& {
    return mails_[{message.from, message.to, message.number}];
  };
  kernel.missing = [&] {
    std::vector<Queue*> streams;
    for (const Message& message : messages)
      if (const Mail& mail = mail_of(message); !mail.done && !(message.sends ? mail.in : mail.out))
        if (const auto other =
                messages_queued_.find({message.from, message.to, !message.sends, message.number});
            other != messages_queued_.end())
          streams.push_back(other->second);
    return streams;
  };
  const OnBoard turn(kernel);
  if (!board().take_slot(lock, kernel, [&] { return aborted(member); })) return;
  if (broke(lock, member, kernel)) return;
  for (const Message& message : messages) {
    Mail& mail = mail_of(message);
    (message.sends ? mail.out : mail.in) = message.tensor;
    if (!mail.out || !mail.in) continue;
    if (mail.out->nbytes() != mail.in->nbytes())
      mail.error = "group " + name_ + ": message " + std::to_string(message.number) + " has " +
                   std::to_string(mail.out->nbytes()) + " bytes where " +
                   std::to_string(mail.in->nbytes()) + " are received";
    else
      mail.in->copy_(*mail.out);
    mail.done = true;
  }
  board().changed.notify_all();
  board().look();
  for (const Message& message : messages) {
    Mail& mail = mail_of(message);
    wait(
        lock, member, &kernel, [&] { return mail.done; },
        [&] {
          return "message " + std::to_string(message.number) + " from " +
                 std::to_string(message.from) + " to " + std::to_string(message.to) +
                 " has one end";
        });
    if (!mail.error.empty()) throw std::runtime_error(mail.error);
    if (!mail.done) (message.sends ? mail.out : mail.in).reset();  // aborted
    messages_queued_.erase({message.from, message.to, message.sends, message.number});
  }
}

void Meeting::abort(int member) {
  const std::scoped_lock lock(board().mutex);
  aborted_[static_cast<std::size_t>(member)] = true;
  board().changed.notify_all();
}

std::string Meeting::own_error(int member) const {
  const std::scoped_lock lock(board().mutex);
  return aborted(member) ? std::string() : errors_[static_cast<std::size_t>(member)];
}

}  // namespace polyphony::exec::testing::queued
