#include "tests/exec/support/counted_transport.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "exec/runner/agreed_names.h"
#include "shared/chunk/expand.h"
#include "shared/program/expand_op.h"
#include "tests/exec/support/tensor_ledger.h"

namespace polyphony::exec::testing {
namespace {

Bytes bytes_of(const torch::Tensor& tensor) {
  return Bytes(static_cast<std::int64_t>(tensor.nbytes()));
}

class CountedCommunicator : public Communicator {
 public:
  CountedCommunicator(CountedTransport& transport, std::string name,
                      std::unique_ptr<Communicator> inner)
      : transport_(transport), name_(std::move(name)), inner_(std::move(inner)) {}
  int index() const override { return inner_->index(); }
  int size() const override { return inner_->size(); }
  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    note(reduction == Reduction::sum ? CollectiveKind::all_reduce : CollectiveKind::all_reduce_max,
         tensor);
    const LedgerScope quiet(nullptr);
    inner_->all_reduce(tensor, reduction);
  }
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    note(CollectiveKind::all_gather, all);
    const LedgerScope quiet(nullptr);
    inner_->all_gather(mine, all, counts);
  }
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    note(CollectiveKind::reduce_scatter, all);
    const LedgerScope quiet(nullptr);
    inner_->reduce_scatter(all, mine, counts);
  }
  // What is beside them is the rank's own: the ledger hears of it.
  void all_reduce_beside(torch::Tensor& tensor, Reduction reduction,
                         const std::function<void()>& beside) override {
    note(CollectiveKind::all_reduce, tensor);
    inner_->all_reduce_beside(tensor, reduction, beside);
  }
  void reduce_scatter_beside(const torch::Tensor& all, torch::Tensor& mine,
                             const std::vector<std::int64_t>& counts,
                             const std::function<void()>& beside) override {
    note(CollectiveKind::reduce_scatter, all);
    inner_->reduce_scatter_beside(all, mine, counts, beside);
  }
  void all_gather_beside(const torch::Tensor& mine, torch::Tensor& all,
                         const std::vector<std::int64_t>& counts,
                         const std::function<void()>& beside) override {
    note(CollectiveKind::all_gather, all);
    inner_->all_gather_beside(mine, all, counts, beside);
  }
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override {
    transport_.note({name_, CollectiveKind::all_to_all, bytes_of(send), bytes_of(receive)});
    const LedgerScope quiet(nullptr);
    inner_->all_to_all(send, receive, send_counts, receive_counts);
  }
  void all_to_all_beside(const torch::Tensor& send, torch::Tensor& receive,
                         const std::vector<std::int64_t>& send_counts,
                         const std::vector<std::int64_t>& receive_counts,
                         const std::function<void()>& beside) override {
    transport_.note({name_, CollectiveKind::all_to_all, bytes_of(send), bytes_of(receive)});
    inner_->all_to_all_beside(send, receive, send_counts, receive_counts, beside);
  }

 private:
  void note(CollectiveKind kind, const torch::Tensor& whole) {
    transport_.note({name_, kind, bytes_of(whole), {}});
  }
  CountedTransport& transport_;
  std::string name_;
  std::unique_ptr<Communicator> inner_;
};

bool same_messages(const Program& program, const std::vector<std::uint32_t>& tags,
                   const Exchange& what, std::vector<SentMessage> messages) {
  std::vector<SentMessage> wanted;
  for (std::uint32_t i = what.messages.begin; i < what.messages.end; ++i) {
    const MessageId id = program.exchange_messages[i];
    const Message& message = program.messages[id.value];
    wanted.push_back({tags[id.value], what.sends ? message.destination : message.source, what.sends,
                      message.bytes});
  }
  std::sort(wanted.begin(), wanted.end());
  std::sort(messages.begin(), messages.end());
  return wanted == messages;
}

// One op may be several calls: trained and frozen values are gathered apart.
bool same_collective(const std::vector<std::string>& names, const Collective& what,
                     const std::vector<GroupCall>& calls) {
  Bytes sum{};
  for (const GroupCall& call : calls) {
    if (call.kind != what.kind || call.group != names[what.group.value]) return false;
    sum += call.bytes;
  }
  return !calls.empty() && sum == what.bytes;
}

bool same_inside(const Program& program, const std::vector<std::string>& names, OpId op,
                 std::vector<GroupCall> calls) {
  const auto& compute = std::get<Compute>(program.ops[op.value].what);
  const ParamGroup& group = program.params[compute.params.value];
  const ModuleLayout& grid = program.layout.modules[compute.module.value];
  const bool shares = grid.sp;
  std::vector<InnerCollective> wanted = expand(program, op).collectives;
  if (grid.cp > 1 && grid.cp_attention == ContextAttention::ring) {  // block by block
    const auto whole = std::erase_if(
        wanted, [](const InnerCollective& one) { return one.group == GroupKind::context; });
    const auto parts = std::erase_if(
        calls, [&](const GroupCall& call) { return call.group == names[group.context.value]; });
    if ((whole > 0) != (parts > 0)) return false;
  }
  if (wanted.size() != calls.size()) return false;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const GroupId over = wanted[i].group == GroupKind::tensor    ? group.tensor
                         : wanted[i].group == GroupKind::context ? group.context
                                                                 : group.expert;
    if (calls[i].kind != wanted[i].kind || calls[i].group != names[over.value]) return false;
    if (wanted[i].kind != CollectiveKind::all_to_all) {
      if (calls[i].bytes != wanted[i].bytes) return false;
      continue;
    }
    // On the way there what is sent, on the way back what comes.
    const Bytes least = std::min(calls[i].bytes, calls[i].received);
    const bool exact = calls[i].bytes == wanted[i].bytes || calls[i].received == wanted[i].bytes;
    if (shares ? least > wanted[i].bytes : !exact) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Communicator> CountedTransport::make_group(const std::string& name,
                                                           const std::vector<Rank>& members) {
  const LedgerScope quiet(nullptr);
  return std::make_unique<CountedCommunicator>(*this, name, inner().make_group(name, members));
}

void CountedTransport::exchange(const std::vector<Transfer>& transfers) {
  {
    const std::scoped_lock lock(mutex_);
    for (const Transfer& transfer : transfers)
      traffic_[open_op()].messages.push_back(
          {transfer.tag, transfer.peer, transfer.sends, bytes_of(transfer.tensor)});
  }
  const LedgerScope quiet(nullptr);
  inner().exchange(transfers);
}

Traffic CountedTransport::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(traffic_, {});
}

void CountedTransport::note(const GroupCall& call) {
  const std::scoped_lock lock(mutex_);
  traffic_[open_op()].calls.push_back(call);
}

std::string wrong_traffic(const Program& program, Rank rank, const Traffic& traffic) {
  const Range ops = program.ops_of(rank);
  const std::vector<std::string> names = group_names(program);
  const std::vector<std::uint32_t> tags = message_tags(program, rank);
  for (std::uint32_t i = ops.begin; i < ops.end; ++i) {
    const OpId op(i);
    const auto found = traffic.find(op);
    const OpTraffic seen = found == traffic.end() ? OpTraffic{} : found->second;
    const auto& what = program.ops[i].what;
    bool same = false;
    if (const auto* exchange = std::get_if<Exchange>(&what))
      same = seen.calls.empty() && same_messages(program, tags, *exchange, seen.messages);
    else if (const auto* collective = std::get_if<Collective>(&what))
      same = seen.messages.empty() && same_collective(names, *collective, seen.calls);
    else if (std::holds_alternative<Compute>(what))
      same = seen.messages.empty() && same_inside(program, names, op, seen.calls);
    else
      same = seen.messages.empty() && seen.calls.empty();
    if (same) continue;
    std::ostringstream text;
    text << describe(program, op) << " on rank " << rank.value << " moved other bytes than the "
         << "Program's:";
    for (const SentMessage& message : seen.messages)
      text << " message " << message.tag << " of " << message.bytes.value;
    for (const GroupCall& call : seen.calls)
      text << ' ' << name(call.kind) << " over " << call.group << " of " << call.bytes.value;
    return text.str();
  }
  if (traffic.count(OpId{}) > 0) return "bytes moved outside any op";
  return {};
}

}  // namespace polyphony::exec::testing
