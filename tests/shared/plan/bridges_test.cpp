// Bridges alone: the messages between an encoder's and a language module's grid, carried out on
// distinct numbers, bring every row to the place where the consumer needs it, and every gradient
// back. What should be where is derived here from the works alone.
#include <doctest/doctest.h>

#include <map>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/verify/verify.h"
#include "shared/work/row_shares.h"
#include "tests/shared/support/example_models.h"

using namespace polyphony;

namespace {

struct Grid {
  int tp = 1, cp = 1, dp = 1;
  bool sp = false;
  ModuleLayout at(int first_rank) const {
    ModuleLayout layout;
    layout.tp = tp;
    layout.cp = cp;
    layout.sp = sp && tp > 1;
    layout.tokens = TokenAssignment::zigzag;
    layout.first_rank = first_rank;
    layout.ranks = tp * cp * dp;
    return layout;
  }
};

std::vector<Grid> grids(int most) {
  std::vector<Grid> all;
  for (const int tp : {1, 2, 4})
    for (const int cp : {1, 2, 3})
      for (const int dp : {1, 2, 3, 4})
        for (const bool sp : {false, true})
          if (tp * cp * dp <= most && !(sp && tp == 1)) all.push_back({tp, cp, dp, sp});
  return all;
}

// Samples of zero to three images of one or four merged rows, and text between them.
Batch uneven_batch() {
  Batch batch;
  for (std::uint32_t s = 0; s < 9; ++s) {
    Sample sample{s, {}};
    for (std::uint32_t i = 0; i < s % 4; ++i) {
      sample.items.push_back({Modality::image, (s + i) % 2 ? 16 : 4, 0});
      sample.items.push_back({Modality::text, static_cast<std::int32_t>(i + 1), 0});
    }
    sample.items.push_back({Modality::text, 3, 1});
    batch.samples.push_back(sample);
  }
  return batch;
}

using Rows = std::vector<std::int64_t>;
std::int64_t number(std::uint32_t sample, std::uint32_t item, std::int64_t row) {
  return (sample * 100 + item) * 100 + row;
}

// What the encoder makes of a work.
Rows made(const Program& p, const Work& work) {
  Rows rows;
  for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
    const ItemOfWork& place = p.items_of_works[i];
    const std::int64_t count = p.batch.samples[place.sample].items[place.item].tokens / 4;
    for (std::int64_t r = 0; r < count; ++r) rows.push_back(number(place.sample, place.item, r));
  }
  return rows;
}
// The image rows among a work's tokens.
Rows wanted(const Program& p, const Work& work) {
  Rows axis, rows;  // -1: text
  for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
    const std::uint32_t s = p.work_samples[i];
    for (std::uint32_t k = 0; k < p.batch.samples[s].items.size(); ++k) {
      const Item& item = p.batch.samples[s].items[k];
      const bool image = item.modality == Modality::image;
      for (std::int64_t r = 0; r < (image ? item.tokens / 4 : item.tokens); ++r)
        axis.push_back(image ? number(s, k, r) : -1);
    }
  }
  for (std::uint32_t i = work.rows.begin; i < work.rows.end; ++i)
    for (std::int64_t at = p.work_rows[i].begin; at < p.work_rows[i].end; ++at)
      if (axis[static_cast<std::size_t>(at)] >= 0)
        rows.push_back(axis[static_cast<std::size_t>(at)]);
  return rows;
}
Rows own(const Rows& all, const ModuleLayout& grid, int t) {
  if (!grid.sp) return all;
  const RowShares shares{static_cast<std::int64_t>(all.size()), grid.tp};
  const auto begin = all.begin() + shares.begin(t);
  return {begin, begin + shares.count(t)};
}

// By buffer, what an op that `uses` it says should be in it.
std::map<std::uint32_t, Rows> contents(const Program& p, ModuleId module, Use use,
                                       BufferKind kind) {
  std::map<std::uint32_t, Rows> all;
  for (const Op& op : p.ops) {
    const auto* what = std::get_if<Compute>(&op.what);
    if (!what || what->module != module) continue;
    const ModuleLayout& grid = p.layout.modules[module.value];
    const Work& work = p.works[what->work.value];
    const int t = p.params[what->params.value].shard.tensor_index;
    for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u)
      if (p.buffer_uses[u].use == use && p.buffers[p.buffer_uses[u].buffer.value].kind == kind)
        all[p.buffer_uses[u].buffer.value] =
            own(module == ModuleId(2) ? wanted(p, work) : made(p, work), grid, t);
  }
  return all;
}

// Carries the messages of one direction out; every row of every destination must be as said.
int carry(const Program& p, BufferKind kind, const std::map<std::uint32_t, Rows>& from,
          const std::map<std::uint32_t, Rows>& to) {
  std::map<std::uint32_t, Rows> arrived;
  for (const auto& [buffer, rows] : to) arrived[buffer] = Rows(rows.size(), -7);
  for (const Message& m : p.messages) {
    if (p.buffers[m.from.value].kind != kind) continue;
    for (std::int64_t r = 0; r < m.rows; ++r)
      arrived.at(m.to.value).at(static_cast<std::size_t>(m.to_row + r)) =
          from.at(m.from.value).at(static_cast<std::size_t>(m.from_row + r));
  }
  CHECK(arrived == to);
  return static_cast<int>(to.size());
}

// Rows that a grid receives, each counted once.
std::int64_t received(const Program& p, BufferKind kind, const ModuleLayout& grid) {
  std::int64_t rows = 0;
  for (const Message& m : p.messages)
    if (p.buffers[m.from.value].kind == kind) rows += m.rows;
  return grid.sp ? rows : rows / grid.tp;
}

}  // namespace

TEST_CASE("bridges deliver every row where it is needed, and return every gradient") {
  int pairs = 0, buffers = 0, copies = 0;
  for (const Grid& encoder : grids(4))
    for (const Grid& language : grids(8))
      for (const Spread spread : {Spread::samples, Spread::images, Spread::copied}) {
        Scenario scenario = examples::small_on_cpu(12, 9);
        Layout layout;
        layout.placement = Placement::non_colocated;
        layout.microbatches = 2;
        ModuleLayout grid = encoder.at(0);
        grid.spread = spread;
        layout.modules = {grid, grid, language.at(grid.ranks)};
        if (check_layout(scenario, layout)) continue;
        CAPTURE(describe(layout.modules[0]));
        CAPTURE(describe(layout.modules[2]));
        const Program p = lower(scenario, layout, make_plan(scenario, layout), uneven_batch());
        REQUIRE(verify(p).empty());
        using Kind = BufferKind;
        buffers += carry(p, Kind::boundary, contents(p, ModuleId(1), Use::write, Kind::boundary),
                         contents(p, ModuleId(2), Use::read, Kind::boundary));
        if (spread == Spread::copied) {  // a copy gets the gradients of the rows that it passed on
          ++copies;
          CHECK(received(p, Kind::boundary_gradient, layout.modules[0]) ==
                received(p, Kind::boundary, layout.modules[2]));
          continue;
        }
        buffers += carry(p, Kind::boundary_gradient,
                         contents(p, ModuleId(2), Use::write, Kind::boundary_gradient),
                         contents(p, ModuleId(1), Use::read, Kind::boundary_gradient));
        ++pairs;
      }
  CHECK(pairs > 300);
  CHECK(buffers > 3000);
  CHECK(copies > 50);
}
