#include "exec/gloo_communicator.h"

#include <utility>

#include "exec/tensor_bytes.h"
#include "shared/error.h"

namespace polyphony::exec {

GlooExchange::GlooExchange(std::shared_ptr<GlooContext> context, const std::string& name,
                           std::vector<Rank> members, std::size_t index)
    : PeerExchange(index, members.size()),
      context_(std::move(context)),
      members_(std::move(members)) {
  group_ = connected(context_, [name, index, count = members_.size()](const GlooContext& shared) {
    return shared.make_process_group(name, index, count);
  });
}

GlooExchange::~GlooExchange() {
  // Destroying it would wait for work that a lost peer keeps from ending.
  if (context_->liveness->lost()) static_cast<void>(group_.release());
}

void GlooExchange::exchange(const std::vector<Parcel>& parcels, std::uint32_t) {
  // Members that count differently would be in different calls: they wait for ever, and are lost.
  const int tag = sequence_ = (sequence_ + 1) % static_cast<int>(kTagEnd - 1);
  const auto bytes = [](const std::byte* data, std::size_t count) {
    return std::vector<torch::Tensor>{torch::from_blob(
        const_cast<std::byte*>(data), {static_cast<std::int64_t>(count)}, torch::kUInt8)};
  };
  std::vector<GlooWork> works;
  std::vector<Rank> peers;
  // Each begins at another member, so that not all send to the same one first.
  for (const bool sends : {false, true}) {
    for (std::size_t step = 1; step < size(); ++step) {
      const std::size_t peer = (sends ? index() + step : index() + size() - step) % size();
      const Parcel& parcel = parcels[peer];
      if ((sends ? parcel.out_bytes : parcel.in_bytes) == 0) continue;
      const int position = static_cast<int>(peer);
      try {
        auto tensors =
            sends ? bytes(parcel.out, parcel.out_bytes) : bytes(parcel.in, parcel.in_bytes);
        works.push_back(sends ? group_->send(tensors, position, tag)
                              : group_->recv(tensors, position, tag));
      } catch (const std::exception& error) {
        throw LostPeer(members_[peer], first_line(error));
      }
      peers.push_back(members_[peer]);
    }
  }
  await_messages(*context_, works, peers);
}

GlooCommunicator::GlooCommunicator(std::shared_ptr<GlooContext> context, std::string name,
                                   std::vector<Rank> members, std::size_t index)
    : context_(std::move(context)),
      name_(std::move(name)),
      members_(std::move(members)),
      index_(index) {
  if (size() == 1 || size() > context_->options.direct_ranks) return;
  links_ =
      connected(context_, [members = members_, name = name_, index](const GlooContext& shared) {
        return shared.make_links(name, members, index);
      });
}

PeerExchange& GlooCommunicator::way(std::size_t bytes) {
  if (links_ && Bytes(static_cast<std::int64_t>(bytes)) <= context_->options.direct_bytes)
    return *links_;
  if (!messages_) messages_ = std::make_unique<GlooExchange>(context_, name_, members_, index_);
  return *messages_;
}

void GlooCommunicator::all_reduce(torch::Tensor& tensor, Reduction reduction) {
  std::byte* const data = bytes_of(tensor);
  const Element element = element_of(tensor);
  if (size() == 1 || tensor.nbytes() == 0) return;
  guarded(*context_, "all_reduce of group " + name_,
          [&] { way(tensor.nbytes()).all_reduce(element, reduction, data, tensor.nbytes()); });
}

void GlooCommunicator::all_gather(const torch::Tensor& mine, torch::Tensor& all,
                                  const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  const Element element = element_of(all);
  std::byte *const from = bytes_of(mine), *const to = bytes_of(all);
  if (parts.total() == 0) return;
  if (size() == 1) return copy_bytes(to, from, parts.total());
  guarded(*context_, "all_gather of group " + name_,
          [&] { way(parts.total()).all_gather(element, from, to, parts); });
}

void GlooCommunicator::reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                                      const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  const Element element = element_of(all);
  std::byte *const from = bytes_of(all), *const to = bytes_of(mine);
  if (parts.total() == 0) return;
  if (size() == 1) return copy_bytes(to, from, parts.total());
  guarded(*context_, "reduce_scatter of group " + name_,
          [&] { way(parts.total()).reduce_scatter(element, from, to, parts); });
}

void GlooCommunicator::all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                                  const std::vector<std::int64_t>& send_counts,
                                  const std::vector<std::int64_t>& receive_counts) {
  const Parts out(send, send_counts, size()), in(receive, receive_counts, size());
  check_apart(send, receive);
  const Element element = element_of(send);
  std::byte *const from = bytes_of(send), *const to = bytes_of(receive);
  POLYPHONY_CHECK(out.bytes(index_) == in.bytes(index_),
                  "group " << name_ << ": member " << index_ << " sends itself "
                           << out.bytes(index_) << " and expects " << in.bytes(index_) << " bytes");
  if (size() == 1) return copy_bytes(to, from, in.total());
  // Nobody knows how much the others move, so size cannot choose the way.
  guarded(*context_, "all_to_all of group " + name_,
          [&] { way(links_ ? 0 : SIZE_MAX).all_to_all(element, from, out, to, in); });
}

}  // namespace polyphony::exec
