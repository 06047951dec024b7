#include "shared/cost/attention_tail.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "shared/program/sample_mask.h"

namespace polyphony {
namespace {

// Returns the size of the union of intervals, which may overlap.
std::int64_t covered(std::vector<Interval>& parts) {
  std::sort(parts.begin(), parts.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::int64_t sum = 0, end = 0;
  for (const Interval& part : parts) {
    sum += std::max<std::int64_t>(0, part.end - std::max(part.begin, end));
    end = std::max(end, part.end);
  }
  return sum;
}

}  // namespace

std::vector<double> query_tiles(const std::vector<Rectangle>& mask,
                                std::span<const Interval> rows) {
  std::vector<double> tiles;
  std::vector<Interval> keys;
  std::int64_t filled = 0;
  const auto close = [&] {
    if (filled > 0) tiles.push_back(static_cast<double>(covered(keys)));
    keys.clear();
    filled = 0;
  };
  for (Interval rest : rows)
    while (rest.size() > 0) {
      const Interval part{rest.begin, std::min(rest.end, rest.begin + kQueryTile - filled)};
      for (const Rectangle& rectangle : mask) {
        if (rectangle.queries.begin >= part.end) break;
        const Rectangle seen = cut(rectangle, part, rectangle.keys);
        if (pairs(seen) > 0) keys.push_back(seen.keys);
      }
      filled += part.size();
      rest.begin = part.end;
      if (filled == kQueryTile) close();
    }
  close();
  return tiles;
}

double launch_tail(const std::vector<double>& tiles, int heads, int places, int row_split) {
  const double work = std::accumulate(tiles.begin(), tiles.end(), 0.0) * heads;
  if (work <= 0) return 1;
  std::vector<double> blocks;
  for (double left : tiles) {
    for (; row_split > 0 && left > row_split; left -= row_split) blocks.push_back(row_split);
    blocks.push_back(left);
  }
  std::priority_queue<double, std::vector<double>, std::greater<>> free(
      {}, std::vector<double>(static_cast<std::size_t>(places), 0.0));
  double end = 0;
  for (int head = 0; head < heads; ++head)
    for (const double block : blocks) {
      const double done = free.top() + block;
      free.pop();
      free.push(done);
      end = std::max(end, done);
    }
  return end * places / work;
}

bool has_tail(const HardwareProfile& profile, const Module& module, const ModuleLayout& layout) {
  return module.kind == ModuleKind::language && module.kv_heads > 0 &&
         profile.device.processors > 0 &&
         (profile.stack.key_heads_a_launch > 0 || layout.gathers_by_heads(module.kv_heads));
}

double attention_tail(const Program& program, const Compute& compute,
                      const HardwareProfile& profile) {
  const Module& module = program.model.modules[compute.module.value];
  const ModuleLayout& layout = program.layout.modules[compute.module.value];
  if (!has_tail(profile, module, layout)) return 1;
  const Work& work = program.works[compute.work.value];
  TokenMask mask;
  for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i)
    add_sample(mask, program.model, program.batch.samples[program.work_samples[i]]);
  const std::span<const Interval> rows(program.work_rows.data() + work.rows.begin,
                                       work.rows.size());
  int key_heads = profile.stack.key_heads_a_launch;
  if (layout.gathers_by_heads(module.kv_heads))
    key_heads = key_heads > 0 ? std::min(key_heads, layout.cp_heads) : layout.cp_heads;
  return launch_tail(query_tiles(rectangles(mask), rows),
                     key_heads * module.heads / module.kv_heads,
                     kBlocksAtOnce * profile.device.processors, layout.row_split);
}

}  // namespace polyphony
