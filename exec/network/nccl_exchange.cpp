#include "exec/network/nccl_exchange.h"

#include <c10/cuda/CUDAStream.h>

#include <chrono>
#include <thread>
#include <utility>

#include "exec/network/store.h"
#include "exec/system/process.h"
#include "shared/patience.h"

namespace polyphony::exec {

namespace {

torch::Dtype dtype_of(Element element) {
  switch (element) {
    case Element::float32:
      return torch::kFloat32;
    case Element::float64:
      return torch::kFloat64;
    case Element::bfloat16:
      return torch::kBFloat16;
    case Element::int64:
      return torch::kInt64;
  }
  return torch::kUInt8;
}

}  // namespace

NcclExchange::NcclExchange(std::shared_ptr<GlooContext> context, const std::string& name,
                           std::size_t index, std::size_t size, torch::Device device)
    : PeerExchange(index, size), context_(std::move(context)), device_(device) {
  // At once and not at the first call: a member with nothing to send there would not come.
  group_ = connected(context_, [=](const GlooContext& shared) {
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = milliseconds(kForEver);  // its watchdog's clock; await() has ours
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        c10::make_intrusive<c10d::PrefixStore>("nccl/" + name, shared.store),
        static_cast<int>(index), static_cast<int>(size), options);
    group->eagerConnectSingleDevice(device);
    return group;
  });
}

NcclExchange::~NcclExchange() {
  if (context_->liveness->lost()) group_->abort();
}

torch::Tensor NcclExchange::tensor(const std::byte* data, std::size_t bytes,
                                   torch::Dtype dtype) const {
  const auto count = static_cast<std::int64_t>(bytes / torch::elementSize(dtype));
  return torch::from_blob(const_cast<std::byte*>(data), {count},
                          torch::TensorOptions(dtype).device(device_));
}

PeerExchange::Limits NcclExchange::limits() const {
  // Not measured. Gathering saves one of two launches of some 20 us, in which NVLink moves about
  // 4 MiB; a piece of 256 MiB takes a hundred times that.
  constexpr std::size_t kGatherBytes = 256 << 10, kPieceBytes = 256 << 20;
  return {kGatherBytes, kPieceBytes};
}

std::byte* NcclExchange::inbox(std::size_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  if (!inbox_.defined() || inbox_.numel() < wanted)
    inbox_ = torch::empty({wanted}, torch::TensorOptions(torch::kUInt8).device(device_));
  return static_cast<std::byte*>(inbox_.data_ptr());
}

void NcclExchange::add(Element element, Reduction reduction,
                       const std::vector<const std::byte*>& sources, std::byte* destination,
                       std::size_t count) {
  if (count == 0) return;
  const torch::NoGradGuard no_grad;
  const torch::Dtype narrow = dtype_of(element);
  const torch::Dtype wide = narrow == torch::kBFloat16 ? torch::kFloat32 : narrow;
  const auto source = [&](std::size_t member) {
    return tensor(sources[member], count * size_of(element), narrow);
  };
  torch::Tensor total = source(0).to(wide, false, true);
  for (std::size_t member = 1; member < sources.size(); ++member) {
    if (reduction == Reduction::sum) {
      total.add_(source(member));  // widens bfloat16
    } else {
      total = torch::maximum(total, source(member).to(wide));
    }
  }
  tensor(destination, count * size_of(element), narrow).copy_(total);
  c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
}

void NcclExchange::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0 || to == from) return;
  tensor(to, bytes).copy_(tensor(from, bytes));
  c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
}

void NcclExchange::all_gather(Element element, const std::byte* mine, std::byte* all,
                              const Parts& parts) {
  if (parts.longest() * size() != parts.total())
    return PeerExchange::all_gather(element, mine, all, parts);
  torch::Tensor output = tensor(all, parts.total()), input = tensor(mine, parts.bytes(index()));
  await(*group_->_allgather_base(output, input, c10d::AllgatherOptions()));
}

void NcclExchange::exchange(const std::vector<Parcel>& parcels, std::uint32_t) {
  group_->startCoalescing();
  for (std::size_t step = 1; step < size(); ++step) {
    const std::size_t to = (index() + step) % size(), from = (index() + size() - step) % size();
    std::vector<torch::Tensor> out{tensor(parcels[to].out, parcels[to].out_bytes)};
    std::vector<torch::Tensor> in{tensor(parcels[from].in, parcels[from].in_bytes)};
    if (parcels[to].out_bytes > 0) group_->send(out, static_cast<int>(to), 0);
    if (parcels[from].in_bytes > 0) group_->recv(in, static_cast<int>(from), 0);
  }
  // None when nothing was sent or received.
  if (const auto work = group_->endCoalescing()) await(*work);
}

// wait() would only make the current stream wait. Waiting here lets a lost peer end it.
void NcclExchange::await(c10d::Work& work) {
  constexpr std::chrono::microseconds kLook{20};
  Patience patience(context_->options.timeout, steady_now());
  while (!work.isCompleted()) {
    if (context_->liveness->lost() || patience.over(steady_now())) {
      group_->abort();
      throw LostPeer(Rank(), "not ended");
    }
    std::this_thread::sleep_for(kLook);
  }
  if (const std::exception_ptr error = work.exception()) std::rethrow_exception(error);
  work.wait();
}

}  // namespace polyphony::exec
