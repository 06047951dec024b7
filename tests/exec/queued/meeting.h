// Where members of a group of queued devices meet (tests/exec/queued/queued_backend.h). Internal.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "shared/units.h"
#include "tests/exec/queued/board.h"

namespace polyphony::exec::testing::queued {

class Meeting {
 public:
  Meeting(std::string name, int size, Seconds patience);

  struct Part {
    std::string what;                    // the same of all members
    std::vector<torch::Tensor> in, out;  // as kernels see them
  };
  using Parts = std::vector<std::optional<Part>>;
  // Messages of one coalesced call; from and to are members.
  struct Message {
    int from, to;
    std::int64_t number;  // of those between the two
    torch::Tensor tensor;
    bool sends;
  };

  // Of the host. All members make the group together, at the same time; a member's kernels run on `stream`.
  void join(int member, const c10::Stream& stream);
  // Of the host, before it queues what needs them: peers are connected at their first call, which waits for them as
  // NCCL's does (src/group.cc of NCCL 2.27: connections are made before the launch). Both ends of a message, all
  // members of a collective.
  void connect_all(int member, const std::string& how);
  void connect(int member, const std::vector<Message>& messages);
  // Of the host: the call of that number is queued, these messages are.
  void call_queued(int member, std::int64_t number);
  void messages_queued(int member, const std::vector<Message>& messages);

  // Of kernels. Return when all have come to their call of this number, and `run`, of the last, is done; when all
  // messages have moved; or when the member has aborted.
  void meet(std::int64_t number, int member, Part part, const std::function<void(Parts&)>& run);
  void move(int member, const std::vector<Message>& messages);

  // What this member's kernels and calls wait for ends, and nothing of it is done; its peers wait on.
  void abort(int member);

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
  using End = std::tuple<int, int, bool>;  // from, to, whether it sends
  using Lock = std::unique_lock<std::mutex>;

  bool aborted(int member) const { return aborted_[static_cast<std::size_t>(member)]; }
  Queue* stream(int member) const { return streams_[static_cast<std::size_t>(member)]; }
  GroupKernel kernel(int member, const std::string& what) const;
  // Until `comes` or the member has aborted; throws when neither does for too long, with what `missing` says.
  void wait(Lock& lock, int member, const GroupKernel* kernel, const std::function<bool()>& comes,
            const std::function<std::string()>& missing);
  void host_wait(Lock& lock, int member, const std::function<bool()>& comes,
                 const std::function<std::string()>& missing);
  std::string missing(const Call& call) const;

  std::string name_;
  int size_;
  Seconds patience_;
  // Under the board's mutex.
  std::vector<bool> aborted_;
  std::vector<Queue*> streams_;  // by member; null before it has joined
  std::vector<c10::DeviceIndex> devices_;
  std::vector<std::int64_t> calls_queued_;
  std::map<End, std::int64_t> messages_queued_;
  std::map<std::string, std::vector<bool>> connected_;
  std::map<End, bool> ends_;
  std::map<std::int64_t, Call> calls_;
  std::map<std::tuple<int, int, std::int64_t>, Mail> mails_;
};

}  // namespace polyphony::exec::testing::queued
