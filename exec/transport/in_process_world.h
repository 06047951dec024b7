// The state shared by ranks that are threads of one process, and their communicator. Internal to
// exec/transport/in_process*.cpp.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/transport/barrier.h"
#include "exec/transport/communicator.h"
#include "exec/transport/mailbox.h"
#include "exec/transport/reduce.h"

namespace polyphony::exec {

// The shared state of one group. It keeps two generations of calls, because a member may start call
// n + 1 while others still read the entries of call n.
struct InProcessGroup {
  enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all };
  struct Call {
    Kind kind{};
    Element element{};
    Reduction reduction{};
    std::byte* data = nullptr;  // what the others read: this member's tensor, or `copy`
    std::size_t bytes = 0;
    bool copied = false;
    std::vector<std::int64_t> counts, receive_counts;
    std::vector<std::byte> copy;
  };

  InProcessGroup(std::vector<Rank> members_, bool spin, const std::atomic<bool>& aborted)
      : members(std::move(members_)), barrier(static_cast<int>(members.size()), spin, aborted) {
    for (auto& generation : calls) generation.resize(members.size());
  }

  std::vector<Rank> members;
  Barrier barrier;
  std::array<std::vector<Call>, 2> calls;
  std::size_t joined = 0;
};

struct InProcessWorld {
  InProcessWorld(int ranks, Seconds timeout_);
  void abort(Rank rank, const std::string& why);
  // Throws unless the wait succeeded.
  void require(Waited waited, Rank self, const std::string& where);

  int size;
  Seconds timeout;
  bool spin;
  std::atomic<bool> aborted{false};
  std::deque<Mailbox> mailboxes;         // by destination
  std::atomic<std::uint32_t> posted{0};  // number of letters posted so far
  std::unique_ptr<InProcessGroup> world;
  std::mutex mutex;  // protects the members below
  std::map<std::string, std::shared_ptr<InProcessGroup>> groups;
  std::map<std::string, std::string> letters;
  Rank culprit;
  std::string reason;
};

class InProcessCommunicator : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<InProcessWorld> world,
                        std::shared_ptr<InProcessGroup> group, std::string name, std::size_t index)
      : world_(std::move(world)), group_(std::move(group)), name_(std::move(name)), index_(index) {}

  int index() const override { return static_cast<int>(index_); }
  int size() const override { return static_cast<int>(group_->members.size()); }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override;
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override;
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override;
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override;

 private:
  using Call = InProcessGroup::Call;
  using Calls = std::vector<Call>;
  // Publishes `tensor` to the other members, or a copy of it if it has at most `copy_bytes` bytes.
  // The caller fills in the remaining fields and then calls meet().
  Call& offer(InProcessGroup::Kind kind, const torch::Tensor& tensor, std::size_t copy_bytes);
  // Waits until all members have arrived, and returns their calls.
  const Calls& meet();
  void check(const Calls& calls) const;
  // Returns when no other member reads this member's tensor any more.
  void leave(const Calls& calls);

  std::shared_ptr<InProcessWorld> world_;
  std::shared_ptr<InProcessGroup> group_;
  std::string name_;
  std::size_t index_;
  std::size_t generation_ = 0;
};

}  // namespace polyphony::exec
