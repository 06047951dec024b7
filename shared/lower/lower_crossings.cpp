// Buffers and messages of every link that crosses ranks.
#include <algorithm>

#include "shared/lower/lowering.h"
#include "shared/work/rows.h"

namespace polyphony::lowering {

BufferId Builder::add_boundary_buffer(Rank rank, BufferKind kind, std::int64_t rows,
                                      const ChunkLink& link) {
  if (rows == 0) return {};
  const std::int32_t width = link.input.width;
  program_.buffers.push_back(
      {rank, kind, rows, width, size_of(program_.precision) * (rows * width), link.slot});
  return BufferId(program_.buffers.size() - 1);
}

// Returns the rows of each work at the end of a chunk. of_kept: only of works that have
// ops.
std::vector<std::int64_t> Builder::rows_leaving_all(const ChunkPlace& place, bool of_kept) const {
  const Chunk& chunk = chunk_at(place);
  const Module& module = program_.model.modules[chunk.module.value];
  const Range works = table_.of_branch(place.branch);
  const Representatives& representatives = representatives_[place.branch];
  std::vector<std::int64_t> rows(works.size(), 0);
  for (std::uint32_t w = 0; w < works.size(); ++w)
    if (!of_kept || representatives.empty() || representatives[w] == w)
      rows[w] = rows_leaving(module, chunk.layers.end,
                             program_.size_of(WorkId(works.begin + w), chunk.module));
  return rows;
}

Builder::Seat Builder::seat(std::size_t branch, std::size_t work) const {
  const Work& at = table_.works[table_.first_work[branch] + work];
  return {static_cast<int>(at.context), plan_.branches[branch].lane_at(static_cast<int>(at.lane))};
}

Side Builder::make_side(const ChunkPlace& place, std::vector<std::int64_t> rows, BufferKind kind,
                        const ChunkLink& link) {
  const Branch& branch = plan_.branches[place.branch];
  const ModuleLayout& grid = branch.grid;
  const int stride = branch.kept.stride;
  Side side{place,
            &representatives_[place.branch],
            static_cast<std::size_t>(grid.tp / stride),
            stride,
            kind == BufferKind::boundary_gradient,
            shards_rows(chunk_at(place).module),
            std::move(rows),
            {},
            {}};
  for (std::size_t w = 0; w < side.rows.size(); ++w) {
    const std::int64_t all = side.rows[w];
    const bool kept = side.represented_by(w) == w;
    for (int t = 0; t < grid.tp; t += stride)
      side.buffers.push_back(
          kept ? add_boundary_buffer(rank_of(side, w, t + branch.kept.offset), kind,
                                     side.sharded ? own_rows(all, grid.tp, t).size() : all, link)
               : BufferId{});
  }
  side.messages.resize(side.buffers.size());
  return side;
}

namespace {

// Returns the replica from which rank `receiver` (index `index` in its own tensor-parallel group)
// receives rows: itself if it is one. `first`: the first replica; the others follow it.
int choose_replica(Rank first, int tp, Rank receiver, int index) {
  if (receiver >= first && receiver.value < first.value + static_cast<std::uint32_t>(tp))
    return static_cast<int>(receiver.value - first.value);
  return index % tp;
}

// Returns tensor-parallel rank t of a group, given its first rank.
Rank at(Rank first, int t) { return Rank(std::size_t{first.value} + static_cast<std::size_t>(t)); }

}  // namespace

Rank Builder::rank_of(const Side& side, std::size_t work, int t) const {
  const Branch& branch = plan_.branches[side.place.branch];
  const auto [context, lane] = seat(side.place.branch, work);
  return branch.grid.rank_at(t, context, lane, branch.rank_of_stage[side.place.stage]);
}

void Builder::add_message(const RowRun& run, const Part& part, Side& source, Side& destination) {
  const Rank sender = at(ends_.from, part.from), receiver = at(ends_.to, part.to);
  const bool led = leads(source, destination);
  // The relays of a leader depend on all messages that it receives, whichever rank is lowered.
  if (step_.only.valid() && !led && sender != step_.only && receiver != step_.only) return;
  const int tp = plan_.branches[source.place.branch].grid.tp;
  const std::int64_t first_from =
      source.sharded ? own_rows(source.rows[run.producer_work], tp, part.from).begin : 0;
  const std::size_t a = source.at(run.producer_work, part.from),
                    b = destination.at(run.consumer_work, part.to);
  const bool whole = led && destination.sharded;
  const std::size_t leader = destination.represented_by(run.consumer_work);
  const BufferId into = whole ? destination.led[leader].buffer : destination.buffers[b];
  if (!into.valid() || !source.buffers[a].valid())
    return;  // folded: its representative has no rows
  const Buffer& buffer = program_.buffers[into.value];
  program_.messages.push_back({sender, receiver, source.buffers[a], into,
                               part.rows.begin - run.to + run.from - first_from,
                               part.rows.begin - part.first_to, part.rows.size(),
                               size_of(program_.precision) * (part.rows.size() * buffer.width),
                               turn_at(destination, run.consumer_work)});
  source.messages[a].emplace_back(program_.messages.size() - 1);
  (whole ? destination.led[leader].messages : destination.messages[b])
      .emplace_back(program_.messages.size() - 1);
}

// Returns the distance between two ranks of the current ends: same rank, same domain, same node, or
// none.
int Builder::distance(int from, int to) const {
  const Rank a = at(ends_.from, from), b = at(ends_.to, to);
  if (a == b) return 0;
  if (cluster_.domain_of(a) == cluster_.domain_of(b)) return 1;
  return cluster_.node_of(a) == cluster_.node_of(b) ? 2 : 3;
}

void Builder::add_parts(const RowRun& run, const Side& source, const Side& destination) {
  const ModuleLayout &from = plan_.branches[source.place.branch].grid,
                     &to = plan_.branches[destination.place.branch].grid;
  const bool led = leads(source, destination);
  // Between stages of one module each rank has its own peer; in a folded plan the kept ranks are
  // enough.
  const bool peers = source.place.branch == destination.place.branch &&
                     source.sharded == destination.sharded && run.from == 0 && run.to == 0 &&
                     run.rows == source.rows[run.producer_work] &&
                     run.rows == destination.rows[run.consumer_work] &&
                     distance(0, 0) == distance(from.tp - 1, to.tp - 1);
  for (int t = 0; t < (led ? 1 : to.tp); t += peers ? destination.stride : 1) {
    Interval own{run.to, run.to + run.rows};
    std::int64_t first = 0;
    if (destination.sharded && !led) {
      const Interval mine = own_rows(destination.rows[run.consumer_work], to.tp, t);
      own = {std::max(own.begin, mine.begin), std::min(own.end, mine.end)};
      first = mine.begin;
    }
    if (own.begin >= own.end) continue;
    if (!source.sharded) {
      const int replica = led ? 0 : choose_replica(ends_.from, from.tp, at(ends_.to, t), t);
      parts_.push_back({t, replica, own, first});
      continue;
    }
    const std::int64_t all = source.rows[run.producer_work],
                       share = std::max<std::int64_t>(1, (all + from.tp - 1) / from.tp);
    const auto owner = static_cast<int>((own.begin - run.to + run.from) / share);
    for (int s = owner; s < from.tp; ++s) {
      const Interval theirs = own_rows(all, from.tp, s);
      const Interval part{std::max(own.begin, theirs.begin - run.from + run.to),
                          std::min(own.end, theirs.end - run.from + run.to)};
      if (part.begin >= part.end) break;
      parts_.push_back({t, s, part, first});
    }
  }
}

// In a folded plan a kept rank waits for everything that any rank it represents would wait for, and
// its links carry all that theirs would. A part between represented ranks is dropped if another
// part of the same size, over the same kind of link, represents it.
void Builder::keep_slowest(const Side& source, const Side& destination) {
  if (parts_.size() < 2) return;
  std::size_t kept = 0;
  for (const Part& part : parts_) {
    const bool own = part.from % source.stride == 0 || part.to % destination.stride == 0;
    const auto stands = [&](const Part& other) {
      return other.to / destination.stride == part.to / destination.stride &&
             other.from / source.stride == part.from / source.stride &&
             other.rows.size() >= part.rows.size() &&
             distance(other.from, other.to) == distance(part.from, part.to);
    };
    if (own ||
        std::none_of(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(kept), stands))
      parts_[kept++] = part;
  }
  parts_.resize(kept);
}

void Builder::add_run(const RowRun& run, Side& source, Side& destination) {
  const Branch& consumer = plan_.branches[destination.place.branch];
  // Folded: links between two represented ranks are like others.
  if (source.represented_by(run.producer_work) != run.producer_work &&
      destination.represented_by(run.consumer_work) != run.consumer_work)
    return;
  parts_.clear();
  ends_ = {rank_of(source, run.producer_work, 0), rank_of(destination, run.consumer_work, 0)};
  add_parts(run, source, destination);
  if (consumer.folded()) keep_slowest(source, destination);
  for (const Part& part : parts_) add_message(run, part, source, destination);
}

void Builder::make_messages(const std::vector<RowRun>& runs, Side& source, Side& destination) {
  const bool led = leads(source, destination);
  if (led && destination.sharded) add_led(destination);
  for (const RowRun& run : runs) add_run(run, source, destination);
  if (led) add_relays(destination);
}

bool Builder::leads(const Side& source, const Side& destination) const {
  return program_.layout.bridge == Bridge::leader &&
         source.place.branch != destination.place.branch;
}

// Under sequence parallelism no rank's own buffer has all rows, so that the leader gets one more
// buffer.
void Builder::add_led(Side& destination) {
  destination.led.resize(destination.rows.size());
  for (std::size_t w = 0; w < destination.rows.size(); ++w) {
    if (destination.rows[w] == 0 || destination.represented_by(w) != w) continue;
    std::size_t i = w * destination.tp;
    while (!destination.buffers[i].valid()) ++i;
    Buffer whole = program_.buffers[destination.buffers[i].value];
    whole.bytes = whole.bytes / whole.rows * destination.rows[w];
    whole.rows = destination.rows[w];
    whole.rank = rank_of(destination, w, 0);
    program_.buffers.push_back(whole);
    destination.led[w].buffer = BufferId(program_.buffers.size() - 1);
  }
}

// Adds what a leader passes on once all its rows have arrived: all of them; under sequence
// parallelism to each rank its own rows, itself included. In a folded plan a rank receives what the
// ranks that it represents receive.
void Builder::add_relays(Side& destination) {
  destination.relays.resize(destination.buffers.size());
  const int tp = plan_.branches[destination.place.branch].grid.tp;
  for (std::size_t w = 0; w < destination.rows.size(); ++w) {
    const std::size_t first = w * destination.tp;
    const bool cut = destination.sharded;
    if (destination.represented_by(w) != w ||
        (cut ? destination.led[w].messages : destination.messages[first]).empty())
      continue;
    const BufferId from = cut ? destination.led[w].buffer : destination.buffers[first];
    for (int t = cut ? 0 : 1; t < tp; ++t) {
      const std::size_t taker = destination.at(w, t);
      const BufferId to = destination.buffers[taker];
      if (!to.valid()) continue;
      const Interval rows =
          cut ? own_rows(destination.rows[w], tp, t) : Interval{0, program_.buffers[to.value].rows};
      if (rows.size() == 0) continue;
      const Buffer& whole = program_.buffers[from.value];
      program_.messages.push_back({whole.rank, rank_of(destination, w, t), from, to, rows.begin, 0,
                                   rows.size(), whole.bytes / whole.rows * rows.size(),
                                   turn_at(destination, w)});
      destination.relays[first].emplace_back(program_.messages.size() - 1);
      if (cut || taker > first)
        destination.messages[taker].emplace_back(program_.messages.size() - 1);
    }
  }
}

void Builder::make_crossing(const ChunkLink& link) {
  const bool onward = link.input.edge < 0;  // to the next layers of the same works
  const std::vector<std::int64_t> made = rows_leaving_all(link.producer, onward);
  std::vector<RowRun> runs;
  std::vector<std::int64_t> taken;
  if (onward) {
    taken = made;
    for (std::uint32_t w = 0; w < made.size(); ++w)
      if (made[w] > 0) runs.push_back({w, w, 0, 0, made[w]});
  } else {
    RowRuns found = make_runs(program_.model, plan_, link, table_, program_.batch);
    runs = std::move(found.runs);
    taken = std::move(found.taken);
  }
  Crossing crossing;
  crossing.link = link;
  crossing.forward_source = make_side(link.producer, made, BufferKind::boundary, link);
  crossing.forward_destination = make_side(link.consumer, taken, BufferKind::boundary, link);
  make_messages(runs, crossing.forward_source, crossing.forward_destination);
  if (link.input.gradient && training_) {
    std::vector<std::int64_t> returned(made.size(), 0);
    for (RowRun& run : runs) {
      std::swap(run.producer_work, run.consumer_work);
      std::swap(run.from, run.to);
      returned[run.consumer_work] += run.rows;
    }
    crossing.backward_source = make_side(link.consumer, taken, BufferKind::boundary_gradient, link);
    crossing.backward_destination =
        make_side(link.producer, made, BufferKind::boundary_gradient, link);
    for (std::size_t w = 0; w < made.size(); ++w)
      for (std::size_t t = 0; t < crossing.backward_destination.tp; ++t) {
        const BufferId buffer =
            crossing.backward_destination.buffers[w * crossing.backward_destination.tp + t];
        if (buffer.valid()) program_.buffers[buffer.value].zeroed = returned[w] < made[w];
      }
    make_messages(runs, crossing.backward_source, crossing.backward_destination);
  }
  crossings_.push_back(std::move(crossing));
}

}  // namespace polyphony::lowering
