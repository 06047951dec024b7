// Rotary positions on packed queries, keys and values (exec/attention/attention.h: layout of qkv; exec/attention/head_rows.cpp: tables).
#pragma once

#include "exec/cuda/portable.h"

namespace polyphony::exec::kernels {

// A row's cosine and sine [turned]: element i of a head becomes x∘cosine + x of the other half∘sine; from `turned` on it stays.
template <class T>
struct Turn {
  using W = Wide<T>;
  const W* cosine;
  const W* sine;
  int turned, width;
  bool aligned;

  // Pack `pack` of the head at x, turned by row's angles, or back.
  POLYPHONY_BOTH Pack<T> operator()(const T* x, std::int64_t row, int pack, bool back) const {
    const int first = pack * kPack<T>, left = width - first, half = turned / 2;
    const Pack<T> own = load(x + first, left, aligned);
    if (first >= turned) return own;
    // One load for the other half's, and one or two for angles, where all of a pack has its own in one place.
    const bool together = aligned && half % kPack<T> == 0;
    constexpr int kTables = kPack<T> / kPack<W>;
    Pack<T> other{};
    Pack<W> cosines[kTables], sines[kTables];
    const std::int64_t at = row * turned + first;
    if (together) other = load(x + (first < half ? first + half : first - half), kPack<T>, true);
    for (int t = 0; t < kTables; ++t) {
      const int from = t * kPack<W>, rest = turned - first - from;
      cosines[t] = load(cosine + at + from, rest, together);
      sines[t] = load(sine + at + from, rest, together);
    }
    Pack<T> out = own;
    for (int e = 0; e < kPack<T>; ++e) {
      const int i = first + e;
      if (i >= turned) continue;
      if (!together) other.x[e] = x[i < half ? i + half : i - half];
      const W cos = cosines[e / kPack<W>].x[e % kPack<W>],
              sin = sines[e / kPack<W>].x[e % kPack<W>];
      const W swapped = widened(other.x[e]) * sin;
      out.x[e] = Narrow<T>::of(widened(own.x[e]) * cos + (back ? -swapped : swapped));
    }
    return out;
  }
};

// Sizes of qkv [rows, K, g + 2, width].
struct PackedHeadSizes {
  int kv_heads, group, width;
};

// Pack i of q [rows, K, g, width] and k [rows, K, width], turned.
template <class T>
struct SplitTurned {
  const T* qkv;
  T* q;
  T* k;
  Turn<T> turn;
  PackedHeadSizes sizes;
  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const int packs = static_cast<int>(packs_of<T>(sizes.width)), group = sizes.group;
    const std::int64_t head = i / packs, pair = head / (group + 1), row = pair / sizes.kv_heads;
    const int pack = static_cast<int>(i - head * packs);
    const int place = static_cast<int>(head - pair * (group + 1));
    const Pack<T> out =
        turn(qkv + (pair * (group + 2) + place) * sizes.width, row, pack, /*back=*/false);
    T* const to = place < group ? q + (pair * group + place) * sizes.width : k + pair * sizes.width;
    store(to + pack * kPack<T>, out, sizes.width - pack * kPack<T>, turn.aligned);
  }
};

// Pack i of d_qkv: those of q and k turned back, that of v as it is.
template <class T>
struct JoinTurned {
  const T* dq;
  const T* dk;
  const T* dv;
  T* d_qkv;
  Turn<T> turn;
  PackedHeadSizes sizes;
  POLYPHONY_BOTH void operator()(std::int64_t i) const {
    const int packs = static_cast<int>(packs_of<T>(sizes.width)), group = sizes.group;
    const std::int64_t head = i / packs, pair = head / (group + 2), row = pair / sizes.kv_heads;
    const int pack = static_cast<int>(i - head * packs), left = sizes.width - pack * kPack<T>;
    const int place = static_cast<int>(head - pair * (group + 2));
    Pack<T> out;
    if (place > group)
      out = load(dv + pair * sizes.width + pack * kPack<T>, left, turn.aligned);
    else
      out =
          turn(place < group ? dq + (pair * group + place) * sizes.width : dk + pair * sizes.width,
               row, pack, /*back=*/true);
    store(d_qkv + head * sizes.width + pack * kPack<T>, out, left, turn.aligned);
  }
};

}  // namespace polyphony::exec::kernels
