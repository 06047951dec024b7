#include "exec/wire/peer_exchange.h"

#include <algorithm>
#include <array>

#include "exec/transport/tensor_bytes.h"

namespace polyphony::exec {

namespace {

enum class Kind : std::uint32_t { all_reduce, all_gather, reduce_scatter, all_to_all };

std::uint32_t code(Kind kind, Element element, Reduction reduction = Reduction::sum) {
  return static_cast<std::uint32_t>(kind) * 16 + static_cast<std::uint32_t>(element) * 2 +
         static_cast<std::uint32_t>(reduction);
}

// Bytes of an all-reduce up to which every member sends its whole array to every other: one round
// trip instead of two. Measured on 2 cores (tests/exec/transport/transport_bench.cpp): half the
// time up to 64 KiB on 2 ranks and up to 16 KiB on 8.
constexpr std::size_t kGatherBytes = 16 << 10;
// Memory for the data that the other members send; longer sums are computed in chunks.
constexpr std::size_t kPieceBytes = 16 << 20;

void add(Element element, Reduction reduction, const std::vector<const std::byte*>& sources,
         std::byte* destination, std::size_t count) {
  const std::array<std::byte*, 1> destinations{destination};
  reduce(element, reduction, sources, destinations, count);
}

}  // namespace

std::byte* PeerExchange::inbox(std::size_t bytes) {
  if (inbox_.size() < bytes) inbox_.resize(bytes);
  return inbox_.data();
}

void PeerExchange::gather_and_add(Element element, Reduction reduction, std::byte* data,
                                  std::size_t bytes) {
  std::byte* const box = inbox(bytes * size_);
  std::vector<Parcel> parcels(size_);
  std::vector<const std::byte*> sources(size_);
  for (std::size_t peer = 0; peer < size_; ++peer) {
    std::byte* const in = box + bytes * peer;
    parcels[peer] = {.out = data, .out_bytes = bytes, .in = in, .in_bytes = bytes};
    sources[peer] = peer == index_ ? data : in;
  }
  exchange(parcels, code(Kind::all_reduce, element, reduction));
  add(element, reduction, sources, data, bytes / size_of(element));
}

void PeerExchange::scatter_add_and_gather(Element element, Reduction reduction, std::byte* data,
                                          std::size_t bytes) {
  const std::size_t width = size_of(element);
  const auto begin = [&](std::size_t member) { return bytes / width * member / size_ * width; };
  const std::size_t mine = begin(index_ + 1) - begin(index_);
  std::byte* const box = inbox(mine * size_);
  std::vector<Parcel> out(size_), back(size_);
  std::vector<const std::byte*> sources(size_);
  for (std::size_t peer = 0; peer < size_; ++peer) {
    std::byte* const slice = data + begin(peer);
    const std::size_t theirs = begin(peer + 1) - begin(peer);
    std::byte* const in = box + mine * peer;
    out[peer] = {.out = slice, .out_bytes = theirs, .in = in, .in_bytes = mine};
    back[peer] = {.out = data + begin(index_), .out_bytes = mine, .in = slice, .in_bytes = theirs};
    sources[peer] = peer == index_ ? slice : in;
  }
  const std::uint32_t kind = code(Kind::all_reduce, element, reduction);
  exchange(out, kind);
  add(element, reduction, sources, data + begin(index_), mine / width);
  exchange(back, kind);
}

void PeerExchange::all_reduce(Element element, Reduction reduction, std::byte* data,
                              std::size_t bytes) {
  if (bytes <= kGatherBytes) return gather_and_add(element, reduction, data, bytes);
  constexpr std::size_t piece = kPieceBytes;
  for (std::size_t done = 0; done < bytes; done += piece)
    scatter_add_and_gather(element, reduction, data + done, std::min(piece, bytes - done));
}

void PeerExchange::all_gather(Element element, const std::byte* mine, std::byte* all,
                              const Parts& parts) {
  std::vector<Parcel> parcels(size_);
  for (std::size_t peer = 0; peer < size_; ++peer) {
    parcels[peer] = {.out = mine,
                     .out_bytes = parts.bytes(index_),
                     .in = all + parts.begin(peer),
                     .in_bytes = parts.bytes(peer)};
  }
  exchange(parcels, code(Kind::all_gather, element));
  copy_bytes(all + parts.begin(index_), mine, parts.bytes(index_));
}

void PeerExchange::reduce_scatter(Element element, const std::byte* all, std::byte* mine,
                                  const Parts& parts) {
  const std::size_t width = size_of(element);
  const std::size_t step = kPieceBytes / size_ / width * width;  // bytes of each part per chunk
  const auto left = [&](std::size_t member, std::size_t done) {
    return std::min(step, parts.bytes(member) - std::min(done, parts.bytes(member)));
  };
  for (std::size_t done = 0; done < parts.longest(); done += step) {
    const std::size_t bytes = left(index_, done);
    std::byte* const box = inbox(bytes * size_);
    std::vector<Parcel> parcels(size_);
    std::vector<const std::byte*> sources(size_);
    for (std::size_t peer = 0; peer < size_; ++peer) {
      const std::byte* const out = all + parts.begin(peer) + done;
      std::byte* const in = box + bytes * peer;
      parcels[peer] = {.out = out, .out_bytes = left(peer, done), .in = in, .in_bytes = bytes};
      sources[peer] = peer == index_ ? out : in;
    }
    exchange(parcels, code(Kind::reduce_scatter, element));
    add(element, Reduction::sum, sources, mine + done, bytes / width);
  }
}

void PeerExchange::all_to_all(Element element, const std::byte* send, const Parts& out,
                              std::byte* receive, const Parts& in) {
  std::vector<Parcel> parcels(size_);
  for (std::size_t peer = 0; peer < size_; ++peer) {
    parcels[peer] = {.out = send + out.begin(peer),
                     .out_bytes = out.bytes(peer),
                     .in = receive + in.begin(peer),
                     .in_bytes = in.bytes(peer)};
  }
  exchange(parcels, code(Kind::all_to_all, element));
  copy_bytes(receive + in.begin(index_), send + out.begin(index_), in.bytes(index_));
}

}  // namespace polyphony::exec
