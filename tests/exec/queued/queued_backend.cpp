#include "tests/exec/queued/queued_backend.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>

#include "shared/error.h"
#include "tests/exec/queued/queued_device.h"

namespace polyphony::exec::testing {

using torch::Tensor;

// What members of a group share.
class QueuedMeeting {
 public:
  QueuedMeeting(std::string name, int size, Seconds patience)
      : name_(std::move(name)), size_(size), patience_(patience) {}

  struct Part {
    std::string what;             // the same of all members
    std::vector<Tensor> in, out;  // as kernels see them
  };
  using Parts = std::vector<std::optional<Part>>;

  // Returns when all have come to their call of this number, and `run`, of the last, is done.
  void meet(std::int64_t number, int index, Part part, const std::function<void(Parts&)>& run) {
    std::unique_lock lock(mutex_);
    Call& call = calls_[number];
    if (call.parts.empty()) call.parts.resize(static_cast<std::size_t>(size_));
    const std::string what = part.what;
    call.parts[static_cast<std::size_t>(index)] = std::move(part);
    ++call.came;
    for (const auto& other : call.parts)
      if (other && other->what != what)
        call.error = "group " + name_ + ", call " + std::to_string(number) + ": member " +
                     std::to_string(index) + " calls " + what + ", another " + other->what;
    if (call.came == size_ && call.error.empty()) {
      run(call.parts);
      call.done = true;
    }
    changed_.notify_all();
    const bool came =
        changed_.wait_for(lock, patience_, [&] { return call.done || !call.error.empty(); });
    if (!call.error.empty()) throw std::runtime_error(call.error);
    if (!came) {
      std::string missing;
      for (int member = 0; member < size_; ++member)
        if (!call.parts[static_cast<std::size_t>(member)]) missing += " " + std::to_string(member);
      throw std::runtime_error("group " + name_ + ": member" + missing + " did not come to " +
                               what + ", call " + std::to_string(number));
    }
    if (++call.left == size_) calls_.erase(number);
  }

  // Messages of one coalesced call; from and to are members.
  struct Message {
    int from, to;
    std::int64_t number;  // of those between the two
    Tensor tensor;
    bool sends;
  };
  void move(const std::vector<Message>& messages) {
    std::unique_lock lock(mutex_);
    for (const Message& message : messages) {
      Mail& mail = mails_[{message.from, message.to, message.number}];
      (message.sends ? mail.out : mail.in) = message.tensor;
      if (mail.out && mail.in) {
        if (mail.out->nbytes() != mail.in->nbytes())
          mail.error = "group " + name_ + ": message " + std::to_string(message.number) + " has " +
                       std::to_string(mail.out->nbytes()) + " bytes where " +
                       std::to_string(mail.in->nbytes()) + " are received";
        else
          mail.in->copy_(*mail.out);
        mail.done = true;
      }
    }
    changed_.notify_all();
    for (const Message& message : messages) {
      Mail& mail = mails_[{message.from, message.to, message.number}];
      if (!changed_.wait_for(lock, patience_, [&] { return mail.done; }))
        throw std::runtime_error("group " + name_ + ": message " + std::to_string(message.number) +
                                 " from " + std::to_string(message.from) + " to " +
                                 std::to_string(message.to) + " has one end");
      if (!mail.error.empty()) throw std::runtime_error(mail.error);
    }
  }

 private:
  struct Call {
    Parts parts;
    int came = 0, left = 0;
    bool done = false;
    std::string error;
  };
  struct Mail {
    std::optional<Tensor> out, in;
    bool done = false;
    std::string error;
  };
  std::string name_;
  int size_;
  Seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Call> calls_;
  std::map<std::tuple<int, int, std::int64_t>, Mail> mails_;
};

namespace {

using Parts = QueuedMeeting::Parts;

class QueuedWork : public c10d::Work {
 public:
  QueuedWork(c10::Stream stream) : done_(stream.device_type()), device_(stream.device()) {
    done_.record(stream);
  }
  bool wait(std::chrono::milliseconds) override {
    done_.block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
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

class QueuedBackend : public c10d::Backend {
 public:
  QueuedBackend(std::shared_ptr<QueuedMeeting> meeting, int index, int size, torch::Device device)
      : Backend(index, size),
        meeting_(std::move(meeting)),
        device_(device),
        stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, true)) {}
  const std::string getBackendName() const override { return "queued"; }

  using Handle = c10::intrusive_ptr<c10d::Work>;
  using Split = std::vector<std::int64_t>;

  Handle allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const bool sum = options.reduceOp == c10d::ReduceOp::SUM;
    const Tensor seen = seen_by_kernels(tensors.at(0));
    return call({described(sum ? "all-reduce" : "all-reduce, largest", seen), {seen}, {seen}},
                [sum](Parts& parts) {
                  const Tensor total = reduced(inputs(parts), sum);
                  for (const auto& part : parts) part->out[0].copy_(total);
                });
  }
  Handle _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions&) override {
    const Tensor in = seen_by_kernels(input), out = seen_by_kernels(output);
    POLYPHONY_CHECK(out.numel() == in.numel() * getSize(), "an all-gather of other sizes");
    return call({described("all-gather", in), {in}, {out}}, [](Parts& parts) {
      const Tensor all = at::cat(inputs(parts));
      for (const auto& part : parts) part->out[0].copy_(all);
    });
  }
  Handle _reduce_scatter_base(Tensor& output, Tensor& input,
                              const c10d::ReduceScatterOptions&) override {
    const Tensor in = seen_by_kernels(input), out = seen_by_kernels(output);
    POLYPHONY_CHECK(in.numel() == out.numel() * getSize(), "a reduce-scatter of other sizes");
    return call({described("reduce-scatter", in), {in}, {out}}, [](Parts& parts) {
      const Tensor total = reduced(inputs(parts), true);
      std::int64_t first = 0;
      for (const auto& part : parts) {
        part->out[0].copy_(total.narrow(0, first, part->out[0].numel()));
        first += part->out[0].numel();
      }
    });
  }
  Handle alltoall_base(Tensor& output, Tensor& input, Split& received, Split& sent,
                       const c10d::AllToAllOptions&) override {
    const Tensor in = seen_by_kernels(input), out = seen_by_kernels(output);
    return call({"all-to-all", in.split_with_sizes(sent), out.split_with_sizes(received)},
                [](Parts& parts) {
                  for (std::size_t to = 0; to < parts.size(); ++to)
                    for (std::size_t from = 0; from < parts.size(); ++from)
                      parts[to]->out[from].copy_(parts[from]->in[to]);
                });
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
  void startCoalescing() override { coalesces_ = true; }
  Handle endCoalescing() override {
    coalesces_ = false;
    if (!reduces_.empty()) {
      QueuedMeeting::Part part{"reductions", {}, {}};
      for (const auto& [root, tensor] : reduces_) {
        part.what += " " + std::to_string(root) + ":" + std::to_string(tensor.numel());
        part.in.push_back(tensor);
      }
      const std::vector<std::pair<std::int64_t, Tensor>> mine = std::exchange(reduces_, {});
      std::vector<std::int64_t> roots;
      for (const auto& [root, tensor] : mine) roots.push_back(root);
      return call(std::move(part), [roots](Parts& parts) {
        for (std::size_t i = 0; i < roots.size(); ++i)
          parts[static_cast<std::size_t>(roots[i])]->in[i].copy_(reduced(inputs(parts, i), true));
      });
    }
    if (messages_.empty()) return {};
    return queued(
        [meeting = meeting_, messages = std::exchange(messages_, {})] { meeting->move(messages); });
  }

 private:
  static std::string described(const std::string& what, const Tensor& tensor) {
    return what + " of " + std::to_string(tensor.numel()) + " " +
           c10::toString(tensor.scalar_type());
  }
  Handle call(QueuedMeeting::Part part, const std::function<void(Parts&)>& run) {
    return queued([meeting = meeting_, number = calls_++, index = getRank(), part, run] {
      meeting->meet(number, index, part, run);
    });
  }
  // On the group's stream, behind the current one.
  Handle queued(std::function<void()> work) {
    const c10::impl::VirtualGuardImpl guard(device_.type());
    c10::Event before(device_.type());
    before.record(guard.getStream(device_));
    before.block(stream_);
    {
      const c10::StreamGuard on(stream_);
      queue_on_current(device_, std::move(work));
    }
    return c10::make_intrusive<QueuedWork>(stream_);
  }

  std::shared_ptr<QueuedMeeting> meeting_;
  torch::Device device_;
  c10::Stream stream_;
  std::int64_t calls_ = 0;
  bool coalesces_ = false;
  std::map<std::pair<int, int>, std::int64_t> numbers_;
  std::vector<QueuedMeeting::Message> messages_;
  std::vector<std::pair<std::int64_t, Tensor>> reduces_;
};

}  // namespace

DeviceBackend queued_backend(const std::string& name, int index, int size, torch::Device device,
                             Seconds patience) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<QueuedMeeting>> meetings;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<QueuedMeeting> meeting = meetings[name].lock();
  if (!meeting) {
    meeting = std::make_shared<QueuedMeeting>(name, size, patience);
    meetings[name] = meeting;
  }
  return c10::make_intrusive<QueuedBackend>(std::move(meeting), index, size, device);
}

}  // namespace polyphony::exec::testing
