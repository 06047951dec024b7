// The communicators that a chunk's layers use between their kernels, with one record of what was
// asked of them, in the order of their beginning: expand() (shared/chunk/expand.h) says the same list beforehand.
//   tensor   ranks that share each matrix (and, under sequence parallelism, the rows between them)
//   context  ranks that share a sequence
//   expert   ranks that share a layer's experts
// A group of one does nothing and records nothing. Rows: the first dimension of a contiguous tensor
// [rows, …]; `rows` are counts by member, in group order.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/on_device.h"
#include "exec/transport/communicator.h"
#include "shared/chunk/expand.h"

namespace polyphony::exec {

// Null: a group of one.
struct Communicators {
  Communicator* tensor = nullptr;
  Communicator* context = nullptr;
  Communicator* expert = nullptr;
  Transport* transport =
      nullptr;  // hears of lost peers while the host waits for a device; null: nobody does
};

class InnerGroup {
 public:
  InnerGroup(GroupKind kind, Communicator* communicator, std::vector<InnerCollective>& record,
             Transport* transport = nullptr)
      : kind_(kind), communicator_(communicator), record_(record), transport_(transport) {}
  int size() const { return communicator_ == nullptr ? 1 : communicator_->size(); }
  int index() const { return communicator_ == nullptr ? 0 : communicator_->index(); }

  // `beside`: what is done meanwhile, here on CPUs (the collective has a second thread), queued on a device
  // (Communicator); done, or queued, when these return, like their own part. It must not touch their tensors.
  using BesideIt = std::function<void()>;
  void all_reduce(torch::Tensor& tensor, Reduction reduction = Reduction::sum,
                  const BesideIt& beside = {});
  // mine [rows[index], …] -> [Σ rows, …]
  torch::Tensor all_gather(const torch::Tensor& mine, const std::vector<std::int64_t>& rows,
                           const BesideIt& beside = {});
  // all [Σ rows, …] -> the sum over members of their rows for this one
  torch::Tensor reduce_scatter(const torch::Tensor& all, const std::vector<std::int64_t>& rows,
                               const BesideIt& beside = {});
  // Of equal parts, where they are to be: all [members, …] of mine […], or mine of all.
  void all_gather_into(const torch::Tensor& mine, torch::Tensor& all, const BesideIt& beside);
  void reduce_scatter_into(const torch::Tensor& all, torch::Tensor& mine, const BesideIt& beside);
  // send [Σ send_rows, …]: part i goes to member i. Recorded as `recorded_rows` of send's width:
  // what it moves must not depend on who sends how much to whom (shared/chunk/expand.h).
  torch::Tensor all_to_all(const torch::Tensor& send, const std::vector<std::int64_t>& send_rows,
                           const std::vector<std::int64_t>& receive_rows,
                           std::int64_t recorded_rows);

  // `mine` to the next member, `rows` rows from the one before. Not recorded: when all members' rows have come
  // by, note_round() records as many bytes as their gathering moves, of `like`'s width and format.
  torch::Tensor pass_on(const torch::Tensor& mine, std::int64_t rows, const BesideIt& beside = {});
  void note_round(const torch::Tensor& like, std::int64_t rows);

  // Numbers that the host must know to go on: it waits for a device, and for those that the device waits for.
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
