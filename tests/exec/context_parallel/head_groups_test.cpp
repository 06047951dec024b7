// Attention over a context-parallel group whose keys arrive some heads at a time: same results as
// all heads at once, the collectives in the order of expand(), overlapped with attention by a
// second thread.
#include "exec/context_parallel/context_attention.h"
#include "exec/transport/in_process.h"

#include <string>
#include <thread>

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using torch::Tensor;

namespace {

constexpr HeadShape kHeads{4, 2, 6};  // key/value heads, query heads of each, width
const std::vector<std::int64_t> kLengths{9, 20, 3};

// The calling thread: '.' the rank's own, 'b' another.
class Watched : public Communicator {
 public:
  explicit Watched(Communicator& inner) : inner_(inner), own_(std::this_thread::get_id()) {}
  int index() const override { return inner_.index(); }
  int size() const override { return inner_.size(); }
  void all_reduce(Tensor& tensor, Reduction reduction) override {
    inner_.all_reduce(tensor, reduction);
  }
  void all_gather(const Tensor& mine, Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    note();
    inner_.all_gather(mine, all, counts);
  }
  void reduce_scatter(const Tensor& all, Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    note();
    inner_.reduce_scatter(all, mine, counts);
  }
  void all_to_all(const Tensor& send, Tensor& receive, const std::vector<std::int64_t>& sent,
                  const std::vector<std::int64_t>& received) override {
    note();
    inner_.all_to_all(send, receive, sent, received);
  }
  std::string threads;

 private:
  void note() { threads += std::this_thread::get_id() == own_ ? '.' : 'b'; }
  Communicator& inner_;
  std::thread::id own_;
};

// Rank of a position of a sample.
using HeadDeal = int (*)(std::int64_t sample, std::int64_t position);

struct HeadsOutcome {
  Tensor out, qkv, sinks;  // gradients of the latter two
  std::vector<InnerCollective> collectives;
  std::string threads;
};

std::vector<HeadsOutcome> attend_on(int ranks, HeadDeal deal, AttentionWay way, std::int64_t window,
                                    const TokenMask& mask, torch::Dtype dtype) {
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(ranks));
  std::vector<std::vector<std::int64_t>> lengths(static_cast<std::size_t>(ranks),
                                                 std::vector<std::int64_t>(kLengths.size()));
  auto samples = rows, positions = rows;
  std::int64_t total = 0;
  for (std::size_t s = 0; s < kLengths.size(); ++s)
    for (std::int64_t p = 0; p < kLengths[s]; ++p, ++total) {
      const auto rank = static_cast<std::size_t>(deal(static_cast<std::int64_t>(s), p));
      rows[rank].push_back(total);
      samples[rank].push_back(static_cast<std::int64_t>(s));
      positions[rank].push_back(p);
      ++lengths[rank][s];
    }
  torch::manual_seed(5);
  const Tensor qkv = torch::randn({total, kHeads.kv_heads * (kHeads.group + 2) * kHeads.width},
                                  torch::kFloat64)
                         .to(dtype),
               dy = torch::randn({total, kHeads.kv_heads * kHeads.group * kHeads.width},
                                 torch::kFloat64)
                        .to(dtype),
               sinks = torch::randn({kHeads.kv_heads * kHeads.group}, torch::kFloat64);
  WorkInput data;
  std::vector<std::int64_t> all_samples, all_positions;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    data.context_rows.push_back(static_cast<std::int64_t>(rows[r].size()));
    all_samples.insert(all_samples.end(), samples[r].begin(), samples[r].end());
    all_positions.insert(all_positions.end(), positions[r].begin(), positions[r].end());
  }
  data.context_samples = torch::tensor(all_samples, torch::kInt64);
  data.context_positions = torch::tensor(all_positions, torch::kInt64);
  data.mask = mask;
  std::vector<HeadsOutcome> outcomes(rows.size());
  run_in_process(ranks, [&](Transport& transport) {
    torch::set_num_threads(1);
    const std::size_t rank = transport.rank().value;
    std::vector<Rank> members;
    for (int r = 0; r < ranks; ++r) members.emplace_back(static_cast<std::size_t>(r));
    const auto group = transport.make_group("context", members);
    Watched watched(*group);
    HeadsOutcome& mine = outcomes[rank];
    InnerGroup context(GroupKind::context, &watched, mine.collectives);
    WorkInput own = data;
    own.lengths = lengths[rank];
    const Tensor here = torch::tensor(rows[rank], torch::kInt64);
    const Tensor angles = torch::tensor(positions[rank], torch::kFloat64).unsqueeze(1) *
                          torch::tensor({0.3, 0.1, 0.01}, torch::kFloat64);
    const auto plan = plan_context(own, context, angles, dtype, way, window);
    const Tensor leaf = qkv.index_select(0, here).requires_grad_(true),
                 sink = sinks.clone().requires_grad_(true);
    const bool wide = dtype == torch::kFloat64;  // fp64 sinks with fp64 rows
    mine.out =
        context_attention(gather_keys(leaf, *plan, kHeads), plan, kHeads, wide ? sink : Tensor());
    mine.threads = std::exchange(watched.threads, {}) + ' ';
    mine.out.backward(dy.index_select(0, here));
    mine.threads += watched.threads;
    mine.out = mine.out.detach();
    mine.qkv = leaf.grad();
    mine.sinks = sink.grad();
  });
  return outcomes;
}

bool heads_close(const Tensor& a, const Tensor& b, double bar) {
  return (a - b).norm().item<double>() <= bar * (b.norm().item<double>() + 1e-300);
}

}  // namespace

TEST_SUITE("context parallel") {
  TEST_CASE("keys by heads: same results as all heads at once, for any distribution of rows") {
    const std::vector<HeadDeal> deals{
        [](std::int64_t, std::int64_t p) { return static_cast<int>(p % 3); },
        [](std::int64_t s, std::int64_t p) { return s == 1 && p < 13 ? 1 : 0; },  // none on rank 2
        [](std::int64_t s, std::int64_t) { return static_cast<int>(2 - s); }};
    TokenMask groups;  // sees itself whole; the first and itself, causal; all
    groups.add(9, 0, false, {0, 1});
    groups.add(20, 1, true, {0, 2});
    groups.add(3, 2, false, {0, 3});
    for (const HeadDeal deal : deals)
      for (const TokenMask& mask : {TokenMask{}, groups})
        for (const std::int64_t window : {0, 4})
          for (const std::int64_t split : {0, 5}) {
            const auto run = [&](std::int64_t heads, torch::Dtype dtype) {
              return attend_on(3, deal, {ContextAttention::all_gather, heads, split}, window, mask,
                               dtype);
            };
            for (const torch::Dtype dtype : {torch::kFloat64, torch::kBFloat16}) {
              const std::vector<HeadsOutcome> whole = run(0, dtype);
              for (const std::int64_t heads : {1, 2}) {
                const std::vector<HeadsOutcome> some = run(heads, dtype);
                for (std::size_t rank = 0; rank < 3; ++rank) {
                  CHECK(torch::equal(some[rank].out, whole[rank].out));
                  CHECK(heads_close(some[rank].qkv, whole[rank].qkv, 1e-14));
                  if (whole[rank].sinks.defined())
                    CHECK(heads_close(some[rank].sinks, whole[rank].sinks, 1e-14));
                  else if (some[rank].sinks.defined())  // without rows
                    CHECK(some[rank].sinks.norm().item<double>() == 0);
                }
              }
            }
          }
  }

  // 32 rows of a key and a value of 6 numbers and 8 bytes a head.
  TEST_CASE(
      "keys by heads: gathered on a second thread, gradients during attention over the next "
      "heads") {
    const HeadDeal deal = [](std::int64_t, std::int64_t p) { return static_cast<int>(p % 2); };
    const auto run = [&](std::int64_t heads) {
      return attend_on(2, deal, {ContextAttention::all_gather, heads}, 0, {}, torch::kFloat64);
    };
    const auto list = [](std::int64_t heads, const std::string& kinds) {
      std::vector<InnerCollective> all;
      for (const char kind : kinds)
        all.push_back({kind == 'g' ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter,
                       Bytes(32 * 2 * heads * 6 * 8), GroupKind::context});
      return all;
    };
    for (const HeadsOutcome& rank : run(0)) {
      CHECK((rank.collectives == list(4, "gs")));
      CHECK(rank.threads == ". .");
    }
    for (const HeadsOutcome& rank : run(2)) {
      CHECK((rank.collectives == list(2,
                                      "gg"
                                      "ggss")));
      CHECK(rank.threads == ".b .bb.");
    }
    for (const HeadsOutcome& rank : run(1)) {
      CHECK((rank.collectives == list(1,
                                      "gggg"
                                      "gggsgsss")));
      CHECK(rank.threads == ".bbb .bbbbbb.");
    }
  }

  TEST_CASE(
      "rings: a second thread passes blocks on; gradients take one link fewer than there are "
      "ranks") {
    const auto run = [&](int ranks) {
      const HeadDeal deal =
          ranks == 2 ? [](std::int64_t, std::int64_t p) { return static_cast<int>(p % 2); }
                     : [](std::int64_t, std::int64_t p) { return static_cast<int>(p % 3); };
      return attend_on(ranks, deal, {ContextAttention::ring, 0}, 0, {}, torch::kFloat64);
    };
    // Backward: the other rank's keys arrive during attention over the own block; with three ranks
    // the third's during the second's, and the sum of a block's gradients during the third's. The
    // last link home is not overlapped.
    for (const HeadsOutcome& rank : run(2)) CHECK(rank.threads == "b b.");
    for (const HeadsOutcome& rank : run(3)) CHECK(rank.threads == "bb bbb.");
  }
}
