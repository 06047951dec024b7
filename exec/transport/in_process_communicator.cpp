#include <algorithm>
#include <array>

#include "exec/transport/in_process_world.h"
#include "exec/transport/parts.h"
#include "exec/transport/tensor_bytes.h"
#include "shared/enum_names.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

using Kind = InProcessGroup::Kind;

// Up to this size every member sums the whole array: one barrier instead of two, at the price of
// `size` times the additions. Measured on 2 cores (tests/exec/transport/transport_bench.cpp): both
// options cost the same at 16 KiB on 4 and on 8 threads.
constexpr std::size_t kSmallBytes = 16 << 10;
// Up to this size a member copies the data that the others will read: one copy instead of a second
// barrier. Measured the same way: faster up to this size, equal up to 256 KiB, slower from 512 KiB
// on.
constexpr std::size_t kCopyBytes = 64 << 10;

const char* text(Kind kind) {
  constexpr auto kTexts =
      names_of<Kind>("all_reduce", "all_gather", "reduce_scatter", "all_to_all");
  return kTexts[kind];
}

}  // namespace

InProcessCommunicator::Call& InProcessCommunicator::offer(Kind kind, const torch::Tensor& tensor,
                                                          std::size_t copy_bytes) {
  Call& call = group_->calls[generation_][index_];
  call.kind = kind;
  call.element = element_of(tensor);
  call.data = bytes_of(tensor);
  call.bytes = tensor.nbytes();
  call.copied = call.bytes <= copy_bytes;
  if (call.copied) {
    call.copy.assign(call.data, call.data + call.bytes);
    call.data = call.copy.data();
  }
  return call;
}

const InProcessCommunicator::Calls& InProcessCommunicator::meet() {
  const Calls& calls = group_->calls[generation_];
  generation_ ^= 1u;
  world_->require(group_->barrier.arrive_and_wait(world_->timeout), group_->members[index_],
                  std::string(text(calls[index_].kind)) + " of group " + name_);
  check(calls);
  return calls;
}

// All members reach the same conclusion, so that none waits alone in leave().
void InProcessCommunicator::check(const Calls& calls) const {
  const Call& mine = calls[index_];
  for (const Call& call : calls)
    POLYPHONY_CHECK(call.kind == mine.kind, "members of group " << name_ << " call "
                                                                << text(call.kind) << " and "
                                                                << text(mine.kind));
  for (const Call& call : calls) {
    bool fits = call.element == mine.element;
    switch (mine.kind) {
      case Kind::all_reduce:
        fits = fits && call.bytes == mine.bytes && call.reduction == mine.reduction;
        break;
      case Kind::all_gather:
      case Kind::reduce_scatter:
        fits = fits && call.counts == mine.counts;
        break;
      case Kind::all_to_all:
        for (std::size_t to = 0; to < calls.size(); ++to)
          fits =
              fits && call.counts[to] ==
                          calls[to].receive_counts[static_cast<std::size_t>(&call - calls.data())];
        break;
    }
    POLYPHONY_CHECK(fits, "members of group " << name_ << " call " << text(mine.kind) << " on "
                                              << call.bytes << " and on " << mine.bytes
                                              << " bytes, or differ in type, reduction or counts");
  }
}

void InProcessCommunicator::leave(const Calls& calls) {
  const bool all_copied =
      std::all_of(calls.begin(), calls.end(), [](const Call& call) { return call.copied; });
  if (!all_copied) group_->barrier.arrive_and_wait_at_any_rate();
}

void InProcessCommunicator::all_reduce(torch::Tensor& tensor, Reduction reduction) {
  std::byte* const data = bytes_of(tensor);
  if (size() == 1 || tensor.nbytes() == 0) return;
  offer(Kind::all_reduce, tensor, kSmallBytes).reduction = reduction;
  const Calls& calls = meet();
  const Call& mine = calls[index_];
  // Small: each member sums whole copies into its own tensor. Else it sums its slice of all
  // members' tensors, in place.
  const bool sliced = !mine.copied;
  const std::size_t width = size_of(mine.element);
  const std::size_t count = mine.bytes / width;
  const std::size_t begin = sliced ? count * index_ / calls.size() : 0;
  const std::size_t end = sliced ? count * (index_ + 1) / calls.size() : count;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> destinations;
  for (const Call& call : calls) {
    sources.push_back(call.data + begin * width);
    if (sliced) destinations.push_back(call.data + begin * width);
  }
  if (!sliced) destinations.push_back(data);
  reduce(mine.element, reduction, sources, destinations, end - begin);
  leave(calls);
}

void InProcessCommunicator::all_gather(const torch::Tensor& mine, torch::Tensor& all,
                                       const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  std::byte* const to = bytes_of(all);
  if (parts.total() == 0) return;
  if (size() == 1) return copy_bytes(to, bytes_of(mine), parts.total());
  offer(Kind::all_gather, mine, kCopyBytes).counts = counts;
  const Calls& calls = meet();
  for (std::size_t member = 0; member < calls.size(); ++member) {
    const std::byte* const from = member == index_ ? bytes_of(mine) : calls[member].data;
    copy_bytes(to + parts.begin(member), from, parts.bytes(member));
  }
  leave(calls);
}

void InProcessCommunicator::reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                                           const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  const std::array<std::byte*, 1> to{bytes_of(mine)};
  if (parts.total() == 0) return;
  if (size() == 1) return copy_bytes(to[0], bytes_of(all), parts.total());
  offer(Kind::reduce_scatter, all, kCopyBytes).counts = counts;
  const Calls& calls = meet();
  std::vector<const std::byte*> sources;
  for (const Call& call : calls) sources.push_back(call.data + parts.begin(index_));
  const Element element = calls[index_].element;
  reduce(element, Reduction::sum, sources, to, parts.bytes(index_) / size_of(element));
  leave(calls);
}

void InProcessCommunicator::all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                                       const std::vector<std::int64_t>& send_counts,
                                       const std::vector<std::int64_t>& receive_counts) {
  const Parts out(send, send_counts, size()), in(receive, receive_counts, size());
  check_apart(send, receive);
  std::byte* const to = bytes_of(receive);
  // A member with nothing to move must take part, too: the other members do not know its counts.
  Call& mine = offer(Kind::all_to_all, send, size() == 1 ? 0 : kCopyBytes);
  mine.counts = send_counts;
  mine.receive_counts = receive_counts;
  const Calls& calls = meet();
  const std::size_t width = size_of(mine.element);
  for (std::size_t member = 0; member < calls.size(); ++member) {
    const auto& sent = calls[member].counts;
    std::int64_t before = 0;
    for (std::size_t to_member = 0; to_member < index_; ++to_member) before += sent[to_member];
    copy_bytes(to + in.begin(member), calls[member].data + static_cast<std::size_t>(before) * width,
               in.bytes(member));
  }
  leave(calls);
}

}  // namespace polyphony::exec
