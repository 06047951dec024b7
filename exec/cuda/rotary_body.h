// Kernel bodies of rotary positions on packed queries, keys and values. For the layout of qkv see
// exec/attention/attention.h; for the tables, exec/attention/head_rows.cpp.
#pragma once

#include "exec/cuda/portable.h"

namespace polyphony::exec::kernels {

// Rotates a head by its row's cosine and sine [turned]: an element x becomes x·cosine + x'·sine,
// where x' is its counterpart in the other half; elements from `turned` on are unchanged.
template <class T>
struct Turn {
  using W = Wide<T>;
  const W* cosine;
  const W* sine;
  int turned, width;
  bool aligned;

  // Returns pack `pack` of the head at x, rotated by the row's angles, or rotated back.
  POLYPHONY_BOTH Pack<T> operator()(const T* x, std::int64_t row, int pack, bool back) const {
    const int first = pack * kPack<T>, left = width - first, half = turned / 2;
    const Pack<T> own = load(x + first, left, aligned);
    if (first >= turned) return own;
    // If the counterparts of a pack's elements are one aligned pack, one load fetches them, and one
    // or two loads fetch the angles.
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

// Computes pack i of q [rows, K, g, width] and k [rows, K, width], rotated.
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

// Computes pack i of d_qkv: the gradients of q and k rotated back, and that of v unchanged.
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
