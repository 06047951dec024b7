#include "tests/sim/random/random_graph.h"

#include <algorithm>
#include <utility>

#include "tests/sim/random/dice.h"
#include "tests/sim/random/program_builder.h"
#include "tests/sim/random/random_work.h"

namespace polyphony::tests {
namespace {

class Graph {
 public:
  Graph(bool serial, std::uint64_t seed)
      : serial_(serial),
        dice_(seed),
        ranks_(dice_.small(1, 9)),
        builder_(static_cast<std::uint32_t>(ranks_)),
        live_(static_cast<std::size_t>(ranks_)),
        last_transfers_(static_cast<std::size_t>(ranks_)) {}

  Program build() {
    const int events = dice_.small(5, 60);
    describe(events);
    make_groups();
    for (int event = 0; event < events; ++event) {
      const double roll = dice_.unit();
      if (roll < 0.35) {
        compute({random_rank()}, GroupId());
      } else if (roll < 0.5) {
        const GroupId group = dice_.pick(tensor_groups_);
        compute(members(group), group);
      } else if (roll < 0.85) {
        redistribute();
      } else {
        collective();
      }
    }
    finish_ranks();
    return builder_.finish();
  }

 private:
  Rank random_rank() { return Rank(static_cast<std::size_t>(dice_.whole(0, ranks_ - 1))); }
  std::vector<Rank> members(GroupId group) const {
    return builder_.program.groups[group.value].members;
  }
  StreamId compute_stream(Rank at) { return builder_.stream(at, StreamKind::compute, "compute"); }

  void describe(int events);
  void make_groups();
  void compute(const std::vector<Rank>& on, GroupId rendezvous);
  void redistribute();
  void collective();
  void finish_ranks();
  std::vector<Draft> random_waits(Rank at);
  std::vector<Rank> random_ranks(int count);
  BufferId produce(Rank at, std::int64_t rows);
  // Serial: a transfer waits for all earlier transfers of its rank. Otherwise waits are random.
  std::vector<Draft> transfer_waits(Rank at);
  void transferred(Rank at, Draft op) {
    if (serial_) last_transfers_[at.value].push_back(op);
  }
  Compute next_compute();

  bool serial_;
  Dice dice_;
  int ranks_;
  ProgramBuilder builder_;
  std::vector<GroupId> tensor_groups_;              // disjoint, cover all ranks
  std::vector<GroupId> collective_groups_;          // any
  std::vector<std::vector<BufferId>> live_;         // by rank: boundary buffers with data
  std::vector<std::vector<Draft>> last_transfers_;  // by rank, serial only
  std::uint16_t next_layer_ = 0;
  std::uint32_t next_work_ = 0;
};

// There are as many layers as compute events, so that no two ops compute the same.
void Graph::describe(int events) {
  add_language(builder_.program, false, 8 * events + 4 * ranks_, 1 << dice_.small(4, 12), 1, 1);
  const int works = dice_.small(1, 4);
  for (int i = 0; i < works; ++i) add_work(builder_.program, 0, i, dice_.small(1, 100));
}

void Graph::make_groups() {
  std::vector<Rank> order = random_ranks(ranks_);
  for (std::size_t at = 0; at < order.size();) {
    const auto size = static_cast<std::size_t>(dice_.whole(1, 4));
    const std::size_t end = std::min(order.size(), at + size);
    tensor_groups_.push_back(
        builder_.group(GroupKind::tensor, {order.begin() + static_cast<std::ptrdiff_t>(at),
                                           order.begin() + static_cast<std::ptrdiff_t>(end)}));
    at = end;
  }
  const int count = dice_.small(1, 3);
  for (int i = 0; i < count; ++i) {
    collective_groups_.push_back(
        builder_.group(i == 0 ? GroupKind::world : GroupKind::data,
                       random_ranks(i == 0 ? ranks_ : dice_.small(1, ranks_))));
  }
}

std::vector<Rank> Graph::random_ranks(int count) {
  std::vector<Rank> all;
  for (int r = 0; r < ranks_; ++r) all.push_back(Rank(static_cast<std::size_t>(r)));
  dice_.shuffle(all);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

std::vector<Draft> Graph::random_waits(Rank at) {
  std::vector<Draft> waits;
  const auto& before = builder_.of_rank(at);
  while (!before.empty() && dice_.chance(0.3)) waits.push_back(dice_.pick(before));
  return waits;
}

std::vector<Draft> Graph::transfer_waits(Rank at) {
  std::vector<Draft> waits = random_waits(at);
  if (serial_) {
    waits = last_transfers_[at.value];
    last_transfers_[at.value].clear();
  }
  return waits;
}

Compute Graph::next_compute() {
  const std::uint16_t layer = next_layer_++;
  return {ModuleId(0),
          {layer, static_cast<std::uint16_t>(layer + 1)},
          Phase::forward,
          WorkId(next_work_++ % builder_.program.works.size())};
}

// Each rank of `on` reads some of its buffers, frees some of these, and writes a new one.
void Graph::compute(const std::vector<Rank>& on, GroupId rendezvous) {
  const Compute what = next_compute();
  for (const Rank at : on) {
    std::vector<BufferUse> uses;
    std::vector<BufferId> kept;
    for (const BufferId held : live_[at.value]) {
      const bool reads = dice_.chance(0.6);
      const bool frees = reads && dice_.chance(0.7);
      if (reads) uses.push_back({held, Use::read});
      if (frees) uses.push_back({held, Use::free});
      if (!frees) kept.push_back(held);
    }
    live_[at.value] = std::move(kept);
    if (dice_.chance(0.5)) {
      const BufferId made = builder_.buffer(at, BufferKind::boundary, dice_.whole(1, 5000),
                                            builder_.program.model.modules[0].hidden);
      uses.push_back({made, Use::allocate});
      uses.push_back({made, Use::write});
      live_[at.value].push_back(made);
    }
    builder_.compute(compute_stream(at), what, rendezvous, random_waits(at), std::move(uses));
  }
}

// Returns a new buffer with this number of rows, written by a separate op.
BufferId Graph::produce(Rank at, std::int64_t rows) {
  const BufferId made =
      builder_.buffer(at, BufferKind::boundary, rows, builder_.program.model.modules[0].hidden);
  const Compute what = next_compute();
  builder_.compute(compute_stream(at), what, GroupId(), random_waits(at),
                   {{made, Use::allocate}, {made, Use::write}});
  return made;
}

// Redistributes rows that are divided over some ranks to others, with a different division; the two
// sets of ranks may overlap.
void Graph::redistribute() {
  const int most = serial_ ? 1 : std::min(3, ranks_);
  const std::vector<Rank> sources = random_ranks(dice_.small(1, most));
  std::vector<Rank> destinations = random_ranks(dice_.small(1, most));
  const auto both = static_cast<std::int64_t>(std::max(sources.size(), destinations.size()));
  const std::int64_t rows = dice_.whole(both, 20000);
  // Cut points: 0 = first cut < … < last cut = rows.
  const auto cut = [&](std::size_t parts) {
    std::vector<std::int64_t> at{0, rows};
    while (at.size() <= parts) {
      const std::int64_t next = dice_.whole(1, rows - 1);
      if (std::find(at.begin(), at.end(), next) == at.end()) at.push_back(next);
    }
    std::sort(at.begin(), at.end());
    return at;
  };
  const std::vector<std::int64_t> from_cut = cut(sources.size());
  const std::vector<std::int64_t> to_cut = cut(destinations.size());
  std::vector<BufferId> from, to;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    from.push_back(produce(sources[i], from_cut[i + 1] - from_cut[i]));
  }
  for (std::size_t j = 0; j < destinations.size(); ++j) {
    to.push_back(builder_.buffer(destinations[j], BufferKind::boundary, to_cut[j + 1] - to_cut[j],
                                 builder_.program.model.modules[0].hidden));
  }
  std::vector<std::vector<MessageId>> out(from.size()), in(to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::int64_t begin = std::max(from_cut[i], to_cut[j]);
      const std::int64_t end = std::min(from_cut[i + 1], to_cut[j + 1]);
      if (begin >= end) continue;
      const MessageId message =
          builder_.message(from[i], begin - from_cut[i], to[j], begin - to_cut[j], end - begin);
      out[i].push_back(message);
      in[j].push_back(message);
    }
  }
  const std::string lane = std::to_string(dice_.small(0, 1));
  // All waits are drawn before the ops are added: the two ends of one event must not wait for each
  // other.
  std::vector<std::vector<Draft>> send_waits, receive_waits;
  for (const Rank at : sources) send_waits.push_back(transfer_waits(at));
  for (const Rank at : destinations) {
    const auto same = std::find(sources.begin(), sources.end(), at);
    receive_waits.push_back(serial_ && same != sources.end()
                                ? send_waits[static_cast<std::size_t>(same - sources.begin())]
                                : transfer_waits(at));
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    const StreamId stream = builder_.stream(sources[i], StreamKind::send, "send " + lane);
    transferred(sources[i], builder_.exchange(stream, true, out[i], send_waits[i],
                                              {{from[i], Use::read}, {from[i], Use::free}}));
  }
  for (std::size_t j = 0; j < to.size(); ++j) {
    const StreamId stream =
        builder_.stream(destinations[j], StreamKind::receive, "receive " + lane);
    transferred(destinations[j], builder_.exchange(stream, false, in[j], receive_waits[j],
                                                   {{to[j], Use::allocate}, {to[j], Use::write}}));
    live_[destinations[j].value].push_back(to[j]);
  }
}

void Graph::collective() {
  const GroupId group = dice_.pick(collective_groups_);
  const std::vector<CollectiveKind> kinds{
      CollectiveKind::all_reduce, CollectiveKind::all_reduce_max, CollectiveKind::all_gather,
      CollectiveKind::reduce_scatter};
  std::vector<std::vector<Draft>> waits;
  for (const Rank at : members(group)) waits.push_back(transfer_waits(at));
  const auto bytes = Bytes(static_cast<std::int64_t>(dice_.spread(1e2, 1e9)));
  const auto ops = builder_.collective(dice_.pick(kinds), group, bytes, waits, {});
  for (const Draft op : ops) transferred(builder_.rank_of(op), op);
}

// Reads and frees the remaining buffers, so that every rank has an op and every microbatch is used.
void Graph::finish_ranks() {
  while (next_work_ < builder_.program.works.size()) live_[0].push_back(produce(Rank(0), 1));
  for (int r = 0; r < ranks_; ++r) {
    const Rank at{static_cast<std::size_t>(r)};
    std::vector<BufferUse> uses;
    for (const BufferId held : live_[at.value]) {
      uses.push_back({held, Use::read});
      uses.push_back({held, Use::free});
    }
    builder_.compute(compute_stream(at), next_compute(), GroupId(), {}, std::move(uses));
  }
}

}  // namespace

Program make_graph(bool serial, std::uint64_t seed) { return Graph(serial, seed).build(); }

}  // namespace polyphony::tests
