// The communicators that a chunk's layers use between their kernels.
//   tensor   ranks that share each matrix (and, under sequence parallelism, the rows between them)
//   context  ranks that share a sequence
//   expert   ranks that share a layer's experts
//
// The groups keep one record of their collectives, in the order in which they began; it equals the
// list that expand() (shared/chunk/expand.h) predicts. A group of one rank does nothing and records
// nothing.
//
// Rows are the first dimension of a contiguous tensor [rows, …]; a vector `rows` has one count per
// member, in group order.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/on_device.h"
#include "exec/transport/communicator.h"
#include "shared/chunk/expand.h"

namespace polyphony::exec {

// The communicators of the three groups; null for a group of one rank.
struct Communicators {
  Communicator* tensor = nullptr;
  Communicator* context = nullptr;
  Communicator* expert = nullptr;
  // Detects lost peers while the host waits for a device; null: no detection.
  Transport* transport = nullptr;
};

class InnerGroup {
 public:
  InnerGroup(GroupKind kind, Communicator* communicator, std::vector<InnerCollective>& record,
             Transport* transport = nullptr)
      : kind_(kind), communicator_(communicator), record_(record), transport_(transport) {}
  int size() const { return communicator_ == nullptr ? 1 : communicator_->size(); }
  int index() const { return communicator_ == nullptr ? 0 : communicator_->index(); }

  // Work to overlap with a collective: on CPUs it runs on this thread while a second thread runs
  // the collective; on a device it is queued as in Communicator. When a call below returns, both
  // the collective and this work are done, or queued. It must not touch the collective's tensors.
  using BesideIt = std::function<void()>;
  void all_reduce(torch::Tensor& tensor, Reduction reduction = Reduction::sum,
                  const BesideIt& beside = {});
  // Gathers `mine` [rows[index], …] of all members; returns [Σ rows, …].
  torch::Tensor all_gather(const torch::Tensor& mine, const std::vector<std::int64_t>& rows,
                           const BesideIt& beside = {});
  // Sums `all` [Σ rows, …] over the members; returns this member's rows of the sum.
  torch::Tensor reduce_scatter(const torch::Tensor& all, const std::vector<std::int64_t>& rows,
                               const BesideIt& beside = {});
  // The same for equal parts and with given outputs: `mine` […], `all` [members, …].
  void all_gather_into(const torch::Tensor& mine, torch::Tensor& all, const BesideIt& beside);
  void reduce_scatter_into(const torch::Tensor& all, torch::Tensor& mine, const BesideIt& beside);
  // Sends part i of `send` [Σ send_rows, …] to member i; returns the received rows. It is recorded
  // as `recorded_rows` rows of send's width, because the recorded bytes must not depend on how many
  // rows each pair of members exchanges (shared/chunk/expand.h).
  torch::Tensor all_to_all(const torch::Tensor& send, const std::vector<std::int64_t>& send_rows,
                           const std::vector<std::int64_t>& receive_rows,
                           std::int64_t recorded_rows);

  // Sends `mine` to the next member, and returns `rows` rows received from the member before. It is
  // not recorded; after the rows of all members have passed, note_round() records a collective with
  // as many bytes as gathering `rows` rows of `like`'s width and format.
  torch::Tensor pass_on(const torch::Tensor& mine, std::int64_t rows, const BesideIt& beside = {});
  void note_round(const torch::Tensor& like, std::int64_t rows);

  // Return values that the host needs in order to continue: these wait for the device, and thereby
  // for the peers that the device waits for.
  torch::Tensor on_host(const torch::Tensor& there) const;
  torch::Tensor arrived(const OnTheWay& copy) const;

 private:
  template <class Alone, class Queued>
  void run(const torch::Tensor& moved, const BesideIt& beside, Alone alone, Queued queued);
  void gather(const torch::Tensor& mine, torch::Tensor& all,
              const std::vector<std::int64_t>& elements, const BesideIt& beside);
  void scatter(const torch::Tensor& all, torch::Tensor& mine,
               const std::vector<std::int64_t>& elements, const BesideIt& beside);
  void note(CollectiveKind kind, const torch::Tensor& tensor);
  GroupKind kind_;
  Communicator* communicator_;
  std::vector<InnerCollective>& record_;
  Transport* transport_;
};

class InnerGroups {
 public:
  explicit InnerGroups(const Communicators& communicators)
      : tensor(GroupKind::tensor, communicators.tensor, record_, communicators.transport),
        context(GroupKind::context, communicators.context, record_, communicators.transport),
        expert(GroupKind::expert, communicators.expert, record_, communicators.transport) {}
  InnerGroups(const InnerGroups&) = delete;
  InnerGroups& operator=(const InnerGroups&) = delete;

  std::vector<InnerCollective> take_issued();

 private:
  std::vector<InnerCollective> record_;

 public:
  InnerGroup tensor, context, expert;
};

}  // namespace polyphony::exec
