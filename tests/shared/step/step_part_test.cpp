// A rank's part of a StepPlan: it lowers to that rank's part of the whole Program, with its own
// ids, whatever the other ranks do.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/program/queue_order.h"
#include "shared/scenario/typical_batch.h"
#include "shared/step/step_part.h"
#include "shared/step/turns.h"
#include "tests/shared/support/example_models.h"

using namespace polyphony;

namespace {

// Describes the elements of a Program by their content, so that equal elements of two Programs have
// equal names.
class Names {
 public:
  Names(const Program& program, Rank rank) : p_(program) {
    // Messages of a pair of ranks are told apart by their order, which is how the executor matches
    // the two ends (exec/runner/step_state.h).
    std::map<std::pair<Rank, Rank>, int> counts;
    for (const Message& m : p_.messages)
      order_.push_back(
          m.source == rank || m.destination == rank ? counts[{m.source, m.destination}]++ : -1);
  }

  Work work(WorkId id) const {
    Work work = p_.works[id.value];
    work.samples = {0, work.samples.size()};
    work.items = {0, work.items.size()};
    work.rows = {0, work.rows.size()};
    return work;
  }
  std::vector<Sample> samples(WorkId id) const {
    std::vector<Sample> list;
    const Range range = p_.works[id.value].samples;
    for (std::uint32_t i = range.begin; i < range.end; ++i)
      list.push_back(p_.batch.samples[p_.work_samples[i]]);
    return list;
  }
  Group group(GroupId id) const { return id.valid() ? p_.groups[id.value] : Group{}; }
  // Without ids.
  ParamGroup params(ParamGroupId id) const {
    ParamGroup group = p_.params[id.value];
    group.replicas = group.tensor = group.context = group.expert = group.partials = group.shards =
        group.tied = {};
    return group;
  }
  std::vector<Group> groups_of(ParamGroupId id) const {
    const ParamGroup& g = p_.params[id.value];
    std::vector<Group> list;
    for (const GroupId one :
         {g.replicas, g.tensor, g.context, g.expert, g.partials, g.shards, g.tied})
      list.push_back(group(one));
    return list;
  }
  Message message(MessageId id) const {
    Message message = p_.messages[id.value];
    message.from = message.to = {};
    return message;
  }
  int order(MessageId id) const { return order_[id.value]; }
  const Program& program() const { return p_; }

 private:
  const Program& p_;
  std::vector<int> order_;
};

void check_same(const Names& a, const ParamGroupId x, const Names& b, const ParamGroupId y) {
  REQUIRE(x.valid() == y.valid());
  if (!x.valid()) return;
  REQUIRE(a.params(x) == b.params(y));
  REQUIRE(a.groups_of(x) == b.groups_of(y));
}

void check_what(const Names& a, const Op& x, const Names& b, const Op& y) {
  REQUIRE(x.what.index() == y.what.index());
  REQUIRE(a.group(x.group) == b.group(y.group));
  if (const auto* p = std::get_if<Compute>(&x.what)) {
    Compute one = *p, other = std::get<Compute>(y.what);
    check_same(a, one.params, b, other.params);
    REQUIRE(a.work(one.work) == b.work(other.work));
    REQUIRE(a.samples(one.work) == b.samples(other.work));
    for (std::uint32_t m = 0; m < a.program().model.modules.size(); ++m)
      REQUIRE(a.program().size_of(one.work, ModuleId(m)) ==
              b.program().size_of(other.work, ModuleId(m)));
    one.work = other.work = {};
    one.params = other.params = {};
    REQUIRE(one == other);
  } else if (const auto* e = std::get_if<Exchange>(&x.what)) {
    const auto& other = std::get<Exchange>(y.what);
    REQUIRE(e->sends == other.sends);
    REQUIRE(e->messages.size() == other.messages.size());
    for (std::uint32_t m = 0; m < other.messages.size(); ++m) {
      const MessageId one = a.program().exchange_messages[e->messages.begin + m],
                      two = b.program().exchange_messages[other.messages.begin + m];
      REQUIRE(a.message(one) == b.message(two));
      REQUIRE(a.order(one) >= 0);
      REQUIRE(a.order(one) == b.order(two));
    }
  } else if (const auto* c = std::get_if<Collective>(&x.what)) {
    Collective one = *c, other = std::get<Collective>(y.what);
    check_same(a, one.params, b, other.params);
    REQUIRE(a.group(one.group) == b.group(other.group));
    one.params = other.params = {};
    one.group = other.group = {};
    REQUIRE(one == other);
  } else {
    REQUIRE(std::get<Update>(x.what).params.size() == std::get<Update>(y.what).params.size());
  }
}

void check_part(const Names& whole, const Program& own, Rank rank) {
  const Names part(own, rank);
  const Program& all = whole.program();
  const Range theirs = all.ops_of(rank), mine = own.ops_of(rank);
  REQUIRE(own.only == rank);
  REQUIRE(own.totals == all.totals);
  REQUIRE(own.ops.size() == mine.size());
  REQUIRE(theirs.size() == mine.size());
  // The groups that the rank is in, and no others, in the order of the whole.
  std::vector<Group> groups;
  for (const Group& group : all.groups)
    if (std::count(group.members.begin(), group.members.end(), rank)) groups.push_back(group);
  REQUIRE(own.groups == groups);
  for (std::uint32_t i = 0; i < mine.size(); ++i) {
    const Op &a = all.ops[theirs.begin + i], &b = own.ops[i];
    REQUIRE(all.streams[a.stream.value] == own.streams[b.stream.value]);
    check_what(whole, a, part, b);
    REQUIRE(a.waits_for.size() == b.waits_for.size());
    for (std::uint32_t w = 0; w < a.waits_for.size(); ++w)
      REQUIRE(all.waits[a.waits_for.begin + w].value - theirs.begin ==
              own.waits[b.waits_for.begin + w].value);
    REQUIRE(a.buffers.size() == b.buffers.size());
    for (std::uint32_t u = 0; u < a.buffers.size(); ++u) {
      const BufferUse &one = all.buffer_uses[a.buffers.begin + u],
                      &two = own.buffer_uses[b.buffers.begin + u];
      REQUIRE(one.use == two.use);
      REQUIRE(all.buffers[one.buffer.value] == own.buffers[two.buffer.value]);
    }
  }
}

ModuleLayout grid(int ranks, int tp, int cp, int pp) {
  ModuleLayout result;
  result.ranks = ranks;
  result.tp = tp;
  result.cp = cp;
  result.pp = pp;
  return result;
}

// Layouts in which ranks exchange rows with others in every possible way.
std::vector<Layout> layouts() {
  ModuleLayout encoder = grid(2, 1, 1, 1), language = grid(4, 1, 1, 2);
  language.first_rank = 2;
  language.shard = Shard::full;
  std::vector<Layout> list{{.placement = Placement::non_colocated,
                            .modules = {encoder, encoder, language},
                            .microbatches = 4}};
  // One encoder rank feeds four lanes; two lanes of images one by one feed two contexts.
  ModuleLayout one = grid(1, 1, 1, 1), lanes = grid(4, 1, 1, 1);
  lanes.first_rank = 1;
  lanes.shard = Shard::optimizer;
  lanes.shard_ranks = 2;
  list.push_back(
      {.placement = Placement::non_colocated, .modules = {one, one, lanes}, .microbatches = 2});
  encoder.spread = Spread::images;
  ModuleLayout contexts = grid(4, 1, 2, 1);
  contexts.first_rank = 2;
  list.push_back({.placement = Placement::non_colocated,
                  .modules = {encoder, encoder, contexts},
                  .microbatches = 2});
  list.push_back(list.back());
  list.back().bridge = Bridge::leader;
  list.back().modules.back() = grid(4, 2, 1, 1);
  list.back().modules.back().first_rank = 2;
  list.push_back(list.back());
  list.back().modules.back().sp = true;
  ModuleLayout both = grid(8, 2, 1, 2);
  both.vpp = 2;
  both.sp = true;
  list.push_back({.placement = Placement::homogeneous,
                  .modules = {both, both, both},
                  .schedule = ScheduleKind::zero_bubble_v,
                  .microbatches = 4});
  list.push_back({.placement = Placement::homogeneous,
                  .modules = {contexts, contexts, contexts},
                  .microbatches = 2});
  for (ModuleLayout& module : list.back().modules) module.first_rank = 0;
  ModuleLayout wide = grid(8, 1, 1, 1);
  both.vpp = 1;
  list.push_back({.placement = Placement::colocated,
                  .modules = {wide, wide, both},
                  .schedule = ScheduleKind::zero_bubble,
                  .microbatches = 4});
  return list;
}

struct Case {
  Scenario scenario = examples::small_on_cpu(8, 16);
  Layout layout;
  Plan plan;
  Batch batch;
  StepPlan step;

  explicit Case(const Layout& layout_)
      : layout(layout_),
        plan(make_plan(scenario, layout)),
        batch(typical_batch(scenario)),
        step(make_step_plan(scenario, layout, plan, batch)) {
    const auto no = check_layout(scenario, layout);
    INFO((no ? no->reason : ""));
    REQUIRE_FALSE(no.has_value());
  }
  StepParts parts() const { return {scenario.model, plan, step, batch}; }
};

}  // namespace

TEST_CASE("a rank's own part of the Program") {
  int number = 0;
  for (const Layout& layout : layouts()) {
    CAPTURE(number++);
    const Case c(layout);
    const StepParts parts = c.parts();
    StepPlan step = c.step;
    step.turns = make_turns(c.scenario.model, c.plan, step, c.batch);
    for (const StepKind kind : {StepKind::train, StepKind::evaluate}) {
      const Program whole = lower(c.scenario, c.layout, c.plan, step, c.batch, kind);
      CHECK(find_queue_deadlock(whole) == "");
      for (std::uint32_t r = 0; r < whole.ranks; ++r) {
        CAPTURE(r);
        const StepPart part = parts.of(Rank(r));
        const Program own = lower(c.scenario, c.layout, c.plan, part.step, part.batch, kind);
        check_part(Names(whole, Rank(r)), own, Rank(r));
      }
    }
  }
}

TEST_CASE("a part has the works that its rank runs or exchanges rows with, and no others") {
  // Two encoder lanes of one sample in two, four microbatches: the first encoder rank runs 4 works
  // and exchanges rows with the 4 of the first language lane; a rank of the second lane's
  // first stage the same of the other half; one of the second stage has no link to an encoder.
  const Case c(layouts().front());
  const StepParts parts = c.parts();
  const auto works = [&](std::size_t rank) {
    const WorkTable table = parts.of(Rank(rank)).step.works;
    return std::vector<std::uint32_t>{table.of_branch(0).size(), table.of_branch(1).size()};
  };
  CHECK(works(0) == std::vector<std::uint32_t>{4, 4});
  CHECK(works(3) == std::vector<std::uint32_t>{4, 4});
  CHECK(works(5) == std::vector<std::uint32_t>{0, 4});
  CHECK(parts.of(Rank(0)).batch.samples.size() == c.batch.samples.size() / 2);
}

TEST_CASE("a part as bytes: it is restored, and damaged bytes are reported") {
  for (const Layout& layout : layouts()) {
    const Case c(layout);
    StepPart part = c.parts().of(Rank(1));
    CHECK(read_step_part(to_bytes(part)) == part);
    part.batch.samples.at(0).items.at(0) = image_item({2, 8});
    CHECK(read_step_part(to_bytes(part)) == part);
  }
  const Case c(layouts().front());
  const std::string bytes = to_bytes(c.parts().of(Rank(0)));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK_THROWS_AS(read_step_part(other), StepPlanError);
    CHECK_THROWS_AS(read_step_part(bytes.substr(0, i)), StepPlanError);
  }
  std::string newer = bytes;
  newer[0] = 7;
  CHECK_THROWS_WITH_AS(read_step_part(newer),
                       "a step plan of version 7, but this program reads version 4; run the same "
                       "build on all ranks",
                       StepPlanError);
}

TEST_CASE("the digest depends on every part of a step") {
  const Case c(layouts().front());
  const std::uint64_t before = digest(c.step, c.batch);
  const auto changed = [&](auto change) {
    StepPlan step = c.step;
    Batch batch = c.batch;
    change(step, batch);
    return digest(step, batch) != before;
  };
  CHECK_FALSE(changed([](StepPlan&, Batch&) {}));
  CHECK(changed([](StepPlan& step, Batch&) { std::swap(step.orders[0][0], step.orders[0][1]); }));
  CHECK(changed([](StepPlan& step, Batch&) { step.works.works[1].index += 1; }));
  CHECK(changed([](StepPlan& step, Batch&) { ++step.receive_slots; }));
  CHECK(changed([](StepPlan& step, Batch&) { ++step.totals.loss_tokens; }));
  CHECK(changed([](StepPlan&, Batch& batch) { ++batch.samples[0].id; }));
}
