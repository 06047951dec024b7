// A microbatch of tests/exec/support/tiny_model.h, distributed over context-parallel ranks token by
// token.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

// Which rank has the token at `position` of a sample of `length`.
using Deal = std::function<int(std::int64_t sample, std::int64_t position, std::int64_t length)>;

// One context rank's share of a work.
struct Share {
  TestWork work;
  torch::Tensor rows;        // of the whole axis, here
  torch::Tensor image_rows;  // of the rows that arrive over the edge, here
};

inline torch::Tensor indices(const std::vector<std::int64_t>& values) {
  return torch::tensor(values, torch::kInt64);
}

// Positions in `rows` of those `wanted` that are in it, and which of `wanted` they are.
inline std::pair<torch::Tensor, torch::Tensor> find_rows(const torch::Tensor& wanted,
                                                         const torch::Tensor& rows) {
  std::vector<std::int64_t> places, found;
  for (std::int64_t i = 0; i < wanted.numel(); ++i) {
    const torch::Tensor place = rows.eq(wanted[i]).nonzero();
    if (place.numel() == 0) continue;
    places.push_back(place.item<std::int64_t>());
    found.push_back(i);
  }
  return {indices(places), indices(found)};
}

inline std::vector<Share> deal(const TestWork& whole, int ranks, const Deal& rank_of) {
  const WorkInput& in = whole.input;
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(ranks));
  std::vector<std::vector<std::int64_t>> lengths(static_cast<std::size_t>(ranks)), samples,
      positions;
  samples = positions = rows;
  std::vector<Share> shares(static_cast<std::size_t>(ranks));
  std::int64_t row = 0;
  for (std::size_t s = 0; s < in.lengths.size(); ++s) {
    for (auto& counted : lengths) counted.push_back(0);
    for (std::int64_t p = 0; p < in.lengths[s]; ++p, ++row) {
      const auto c =
          static_cast<std::size_t>(rank_of(static_cast<std::int64_t>(s), p, in.lengths[s]));
      rows[c].push_back(row);
      samples[c].push_back(static_cast<std::int64_t>(s));
      positions[c].push_back(p);
      ++lengths[c][s];
      shares[c].work.language.pairs += p + 1;
    }
  }
  std::vector<std::int64_t> counts;
  std::vector<torch::Tensor> all_samples, all_positions;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    counts.push_back(static_cast<std::int64_t>(rows[c].size()));
    all_samples.push_back(indices(samples[c]));
    all_positions.push_back(indices(positions[c]));
  }
  for (std::size_t c = 0; c < shares.size(); ++c) {
    Share& share = shares[c];
    WorkInput& out = share.work.input;
    share.rows = indices(rows[c]);
    const auto [text, text_found] = find_rows(in.text_rows, share.rows);
    const auto [image, image_found] = find_rows(in.edge_rows.at(0), share.rows);
    const auto [loss, loss_found] = find_rows(in.loss_rows, share.rows);
    share.image_rows = image_found;
    out.text_rows = text;
    out.token_ids = in.token_ids.index_select(0, text_found);
    out.edge_rows[0] = image;
    out.positions = in.positions.index_select(-1, share.rows);
    out.lengths = lengths[c];
    out.loss_rows = loss;
    out.labels = in.labels.index_select(0, loss_found);
    out.loss_scale = in.loss_scale;
    out.balance_scale = in.balance_scale;
    out.context_rows = counts;
    out.context_samples = torch::cat(all_samples);
    out.context_positions = torch::cat(all_positions);
    WorkSize& size = share.work.language;
    size.tokens = counts[c];
    size.text_tokens = text.numel();
    size.loss_tokens = loss.numel();
    size.sequences = static_cast<std::int32_t>(
        std::count_if(lengths[c].begin(), lengths[c].end(), [](auto n) { return n > 0; }));
    size.samples = whole.language.samples;
    size.gathered = whole.language.tokens;
    size.gathered_pairs = whole.language.pairs;
  }
  return shares;
}

// How ranks of a tiny language module with so many key/value heads each can attend.
inline std::vector<AttentionWay> ways(int heads, int ranks) {
  std::vector<AttentionWay> all{{ContextAttention::all_gather}, {ContextAttention::ring}};
  for (std::int64_t some = 1; some < heads; some *= 2)
    all.push_back({ContextAttention::all_gather, some});
  if (heads % ranks == 0) all.push_back({ContextAttention::ulysses});
  return all;
}
inline std::string name(const AttentionWay& way) {
  return polyphony::name(way.context) +
         (way.heads > 0 ? " by " + std::to_string(way.heads) : std::string());
}
// As shared/ is told of it.
inline void set_way(ChunkContext& context, const AttentionWay& way) {
  context.cp_attention = way.context;
  context.cp_heads = static_cast<int>(way.heads);
}

struct Named {
  std::string name;
  int ranks;
  Deal deal;
};
inline std::vector<Named> deals() {
  return {
      {"equal runs", 2,
       [](auto, std::int64_t p, std::int64_t n) { return p < (n + 1) / 2 ? 0 : 1; }},
      {"first and last quarter", 2,
       [](auto, std::int64_t p, std::int64_t n) {
         const std::int64_t quarter = p * 4 / n;
         return quarter == 0 || quarter == 3 ? 0 : 1;
       }},
      {"single tokens", 3, [](auto s, std::int64_t p, auto) { return int((s + p) % 3); }},
      {"a rank without tokens", 3, [](auto, std::int64_t p, auto) { return p % 2 == 0 ? 2 : 0; }},
      {"all on one rank", 2, [](auto, auto, auto) { return 1; }},
      {"whole samples", 2, [](std::int64_t s, auto, auto) { return int(s % 2); }},
      {"irregular blocks", 4,
       [](auto s, std::int64_t p, auto) { return int((s * 7 + p / 3 * 5 + p / 3 / 2) % 4); }}};
}

}  // namespace polyphony::exec::testing
