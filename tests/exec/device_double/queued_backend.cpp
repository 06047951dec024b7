#include "tests/exec/device_double/queued_backend.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>

#include "exec/device/own_stream.h"
#include "exec/on_device.h"
#include "shared/error.h"
#include "tests/exec/device_double/meeting.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

using queued::Meeting;
using Parts = Meeting::Parts;

class QueuedWork : public c10d::Work {
 public:
  QueuedWork(c10::Stream stream) : done_(stream.device_type()), device_(stream.device()) {
    done_.record(stream);
  }
  bool wait(std::chrono::milliseconds) override {
    done_.block(exec::current_stream(device_));
    return true;
  }

 private:
  c10::Event done_;
  torch::Device device_;
};

// Some order, the same for sums of as many numbers in groups of a size: copies of a parameter whose gradients are
// summed in groups alike stay the same bits, as NCCL's rings of one shape leave them.
std::vector<std::size_t> shuffled(std::size_t size, std::int64_t numbers) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(static_cast<std::uint32_t>(numbers));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

Tensor reduced(const std::vector<Tensor>& tensors, bool sum) {
  Tensor total;
  for (const std::size_t i : shuffled(tensors.size(), tensors[0].numel()))
    total = !total.defined() ? tensors[i].clone()
            : sum            ? total.add_(tensors[i])
                             : at::maximum(total, tensors[i]);
  return total;
}

std::vector<Tensor> inputs(const Parts& parts, std::size_t which = 0) {
  std::vector<Tensor> all;
  for (const auto& part : parts) all.push_back(part->in[which]);
  return all;
}

class QueuedBackend : public GroupBackend {
 public:
  QueuedBackend(std::shared_ptr<Meeting> meeting, int index, int size, torch::Device device)
      : GroupBackend(index, size), meeting_(std::move(meeting)), device_(device) {
    meeting_->join(index, device);
  }
  const std::string getBackendName() const override { return "queued"; }

  using Handle = c10::intrusive_ptr<c10d::Work>;
  using Split = std::vector<std::int64_t>;

  Handle allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const bool sum = options.reduceOp == c10d::ReduceOp::SUM;
    const Tensor seen = seen_by_kernels(tensors.at(0));
    return call(
        {described(sum ? "all-reduce" : "all-reduce, largest", seen), {seen}, {seen}},
        [sum](Parts& parts) {
          const Tensor total = reduced(inputs(parts), sum);
          for (const auto& part : parts) part->out[0].copy_(total);
        },
        options.asyncOp);
  }
  Handle _allgather_base(Tensor& output, Tensor& input,
                         const c10d::AllgatherOptions& options) override {
    const Tensor in = seen_by_kernels(input), out = seen_by_kernels(output);
    POLYPHONY_CHECK(out.numel() == in.numel() * getSize(), "an all-gather of other sizes");
    return call(
        {described("all-gather", in), {in}, {out}},
        [](Parts& parts) {
          const Tensor all = at::cat(inputs(parts));
          for (const auto& part : parts) part->out[0].copy_(all);
        },
        options.asyncOp);
  }
  Handle _reduce_scatter_base(Tensor& output, Tensor& input,
                              const c10d::ReduceScatterOptions& options) override {
    const Tensor in = seen_by_kernels(input), out = seen_by_kernels(output);
    POLYPHONY_CHECK(in.numel() == out.numel() * getSize(), "a reduce-scatter of other sizes");
    return call(
        {described("reduce-scatter", in), {in}, {out}},
        [](Parts& parts) {
          const Tensor total = reduced(inputs(parts), true);
          std::int64_t first = 0;
          for (const auto& part : parts) {
            part->out[0].copy_(total.narrow(0, first, part->out[0].numel()));
            first += part->out[0].numel();
          }
        },
        options.asyncOp);
  }
  Handle alltoall_base(Tensor& output, Tensor& input, Split& received, Split& sent,
                       const c10d::AllToAllOptions& options) override {
    const Tensor in = seen_by_kernels(input), out = seen_by_kernels(output);
    std::vector<Meeting::Message> ends;
    for (int peer = 0; peer < getSize(); ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      if (sent[at] > 0) ends.push_back({getRank(), peer, 0, {}, true});
      if (received[at] > 0) ends.push_back({peer, getRank(), 0, {}, false});
    }
    meeting_->connect(getRank(), ends);
    return call(
        {"all-to-all", in.split_with_sizes(sent), out.split_with_sizes(received)},
        [](Parts& parts) {
          for (std::size_t to = 0; to < parts.size(); ++to)
            for (std::size_t from = 0; from < parts.size(); ++from)
              parts[to]->out[from].copy_(parts[from]->in[to]);
        },
        options.asyncOp);
  }
  Handle reduce(std::vector<Tensor>& tensors, const c10d::ReduceOptions& options) override {
    POLYPHONY_CHECK(coalesces_, "a reduce that is not one of several");
    reduces_.push_back({options.rootRank, seen_by_kernels(tensors.at(0))});
    return {};
  }
  Handle send(std::vector<Tensor>& tensors, int to, int) override {
    POLYPHONY_CHECK(coalesces_, "a send that is not one of several");
    messages_.push_back(
        {getRank(), to, numbers_[{getRank(), to}]++, seen_by_kernels(tensors.at(0)), true});
    return {};
  }
  Handle recv(std::vector<Tensor>& tensors, int from, int) override {
    POLYPHONY_CHECK(coalesces_, "a receive that is not one of several");
    messages_.push_back(
        {from, getRank(), numbers_[{from, getRank()}]++, seen_by_kernels(tensors.at(0)), false});
    return {};
  }
  void begin_messages(bool apart) override {
    coalesces_ = true;
    apart_ = apart;
  }
  Handle endCoalescing() override {
    coalesces_ = false;
    if (!reduces_.empty()) {
      Meeting::Part part{"reductions of", {}, {}};
      for (const auto& [root, tensor] : reduces_) {
        part.what += " " + std::to_string(root) + ":" + std::to_string(tensor.numel());
        part.in.push_back(tensor);
      }
      const std::vector<std::pair<std::int64_t, Tensor>> mine = std::exchange(reduces_, {});
      std::vector<std::int64_t> roots;
      for (const auto& [root, tensor] : mine) roots.push_back(root);
      return call(
          std::move(part),
          [roots](Parts& parts) {
            for (std::size_t i = 0; i < roots.size(); ++i)
              parts[static_cast<std::size_t>(roots[i])]->in[i].copy_(
                  reduced(inputs(parts, i), true));
          },
          apart_);
    }
    if (messages_.empty()) return {};
    const std::vector<Meeting::Message> messages = std::exchange(messages_, {});
    meeting_->connect(getRank(), messages);
    const c10::Stream stream = apart_ ? own_stream() : exec::current_stream(device_);
    meeting_->messages_queued(messages, stream);
    const auto work = [meeting = meeting_, index = getRank(), messages] {
      meeting->move(index, messages);
    };
    if (apart_) return queued(work, "messages");
    queued::queue_group_kernel(device_, work, "messages");
    return {};
  }
  void abort() override { meeting_->abort(getRank()); }
  std::string own_error() override { return meeting_->own_error(getRank()); }

 private:
  static std::string described(const std::string& what, const Tensor& tensor) {
    return what + " of " + std::to_string(tensor.numel()) + " " +
           c10::toString(tensor.scalar_type());
  }
  Handle call(Meeting::Part part, const std::function<void(Parts&)>& run, bool apart) {
    const std::int64_t number = calls_++;
    const std::string name = part.what.substr(0, part.what.find(" of"));
    // Sums and maxima of a group are connected alike.
    if (name != "all-to-all") meeting_->connect_all(getRank(), name.substr(0, name.find(',')));
    const auto work = [meeting = meeting_, number, index = getRank(), part, run] {
      meeting->meet(number, index, part, run);
    };
    if (apart) {
      meeting_->call_queued(getRank(), number, own_stream());
      return queued(work, name);
    }
    queued::after_host_waits(
        [meeting = meeting_, number, index = getRank(), device = device_, work, name] {
          meeting->call_queued(index, number, exec::current_stream(device));
          queued::queue_group_kernel(device, work, name);
        });
    return {};
  }
  const c10::Stream& own_stream() {
    if (!stream_) stream_.emplace(device_, Priority::urgent);
    return stream_->get();
  }
  // On the group's stream, behind the current one.
  Handle queued(std::function<void()> work, const std::string& name) {
    const c10::Stream stream = own_stream();
    c10::Event before(device_.type());
    before.record(exec::current_stream(device_));
    before.block(stream);
    {
      const c10::StreamGuard on(stream);
      queued::queue_group_kernel(device_, std::move(work), name);
    }
    return c10::make_intrusive<QueuedWork>(stream);
  }

  std::shared_ptr<Meeting> meeting_;
  torch::Device device_;
  std::optional<OwnStream> stream_;  // once a call runs beside other work, as in production
  std::int64_t calls_ = 0;
  bool coalesces_ = false, apart_ = false;
  std::map<std::pair<int, int>, std::int64_t> numbers_;
  std::vector<Meeting::Message> messages_;
  std::vector<std::pair<std::int64_t, Tensor>> reduces_;
};

}  // namespace

namespace queued {

DeviceBackend backend_of(std::shared_ptr<Meeting> meeting, int index, int size,
                         torch::Device device) {
  return c10::make_intrusive<QueuedBackend>(std::move(meeting), index, size, device);
}

}  // namespace queued

}  // namespace polyphony::exec::testing
