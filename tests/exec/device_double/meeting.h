// Matches the calls of a group's members on queued devices
// (tests/exec/device_double/queued_backend.h). Internal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "exec/device/device_group.h"
#include "shared/units.h"
#include "tests/exec/device_double/board.h"

namespace polyphony::exec::testing::queued {

class Meeting {
 public:
  Meeting(std::string name, int size, Seconds patience);

  struct Part {
    std::string what;                    // equal for all members
    std::vector<torch::Tensor> in, out;  // as used by the kernels
  };
  using Parts = std::vector<std::optional<Part>>;
  // Messages of one coalesced call; from and to are members.
  struct Message {
    int from, to;
    std::int64_t number;  // index among the messages between the two
    torch::Tensor tensor;
    bool sends;
  };

  // Called by the host: the device of a member.
  void join(int member, torch::Device device);
  // Called by the host before it queues messages. The first message between two members connects
  // them and waits for the other end, as in NCCL (src/group.cc of NCCL 2.28: connections are made
  // before the launch).
  void connect(int member, const std::vector<Message>& messages);
  // Called by the host before it queues a collective. The first one of each kind connects all
  // members and waits for them, as in NCCL with NCCL_RUNTIME_CONNECT, its default.
  void connect_all(int member, const std::string& kind);
  // Called by the host: records that the call of this number, or these messages, are queued on the
  // stream.
  void call_queued(int member, std::int64_t number, const c10::Stream& stream);
  void messages_queued(const std::vector<Message>& messages, const c10::Stream& stream);

  // Called by kernels. They return when all members have reached their call of this number and the
  // `run` of the last one is done, when all messages have moved, or when the member has aborted.
  void meet(std::int64_t number, int member, Part part, const std::function<void(Parts&)>& run);
  void move(int member, const std::vector<Message>& messages);

  // Ends all waits of this member's kernels and calls, without executing them; its peers keep
  // waiting.
  void abort(int member);
  // Of the host.
  std::string own_error(int member) const;

 private:
  struct Call {
    Parts parts;
    int came = 0, left = 0;
    bool done = false;
    std::string error;
  };
  struct Mail {
    std::optional<torch::Tensor> out, in;
    bool done = false;
    std::string error;
  };
  using End = std::tuple<int, int, bool>;                       // from, to, whether it sends
  using MessageEnd = std::tuple<int, int, bool, std::int64_t>;  // with the message's number
  using Lock = std::unique_lock<std::mutex>;

  bool aborted(int member) const { return aborted_[static_cast<std::size_t>(member)]; }
  GroupKernel kernel(int member, Queue* stream, const std::string& what) const;
  // Waits until `comes` returns true or the member has aborted. Throws after a timeout, with the
  // text of `missing`.
  void wait(Lock& lock, int member, const GroupKernel* kernel, const std::function<bool()>& comes,
            const std::function<std::string()>& missing);
  // Executes a request of break_group(). Returns true if the kernel must end because of the abort.
  bool broke(Lock& lock, int member, const GroupKernel& kernel);
  void await_ends(int member, const std::vector<Message>& messages);
  std::string missing(const Call& call) const;

  std::string name_;
  int size_;
  Seconds patience_;
  // Protected by the board's mutex.
  std::vector<bool> aborted_;
  std::vector<std::string> errors_;  // own_error(), by member
  std::vector<c10::DeviceIndex> devices_;
  std::map<std::pair<int, std::int64_t>, Queue*> calls_queued_;  // by member and number: where
  std::map<MessageEnd, Queue*> messages_queued_;                 // those that have not moved: where
  std::map<End, int>
      ends_;  // ends that have arrived, with the chain of host waits of their thread plus one
  std::map<std::string, std::map<int, int>>
      kinds_;  // by kind of collective and member that has arrived: as in ends_
  std::map<std::int64_t, Call> calls_;
  std::map<std::tuple<int, int, std::int64_t>, Mail> mails_;
};

// Lets the host wait for other ranks: immediately, or, for calls that run together, after all have
// been made; then runs the continuations.
void host_wait(std::function<void()> wait);
void after_host_waits(std::function<void()> work);
int& host_waits();  // chain of this thread (queued_backend.h)
Seconds delay_of_host_waits();

DeviceBackend backend_of(std::shared_ptr<Meeting> meeting, int index, int size,
                         torch::Device device);

}  // namespace polyphony::exec::testing::queued
