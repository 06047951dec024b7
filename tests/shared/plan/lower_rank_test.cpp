// lower_rank(): what one rank lowers for itself is its part of the whole Program.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/plan/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"

using namespace polyphony;

namespace {

// First ids of a rank's own things in the whole Program, where lower_rank() has the first.
struct Offsets {
  std::uint32_t op = 0, params = 0, buffers = 0;
};

ParamGroupId moved(ParamGroupId id, std::uint32_t by) {
  return id.valid() ? ParamGroupId(id.value - by) : id;
}

void check_part(const Program& whole, const Program& own, Rank rank, std::uint32_t common) {
  const Range theirs = whole.rank_ops[rank.value], mine = own.rank_ops[rank.value];
  REQUIRE(own.ops.size() == mine.size());
  REQUIRE(theirs.size() == mine.size());
  REQUIRE(own.groups == whole.groups);
  REQUIRE(own.messages == whole.messages);
  REQUIRE(own.works == whole.works);
  Offsets offset{theirs.begin, 0, 0};
  while (whole.params[offset.params].rank != rank) ++offset.params;
  offset.buffers = common;
  while (whole.buffers[offset.buffers].rank != rank) ++offset.buffers;
  for (std::size_t p = 0; p < own.params.size(); ++p)
    REQUIRE(own.params[p] == whole.params[offset.params + p]);
  const auto buffer = [&](BufferId id) {
    return id.value < common ? id : BufferId(id.value - offset.buffers + common);
  };
  for (std::uint32_t i = 0; i < mine.size(); ++i) {
    Op a = whole.ops[theirs.begin + i];
    const Op& b = own.ops[i];
    REQUIRE(whole.streams[a.stream.value] == own.streams[b.stream.value]);
    REQUIRE(a.group == b.group);
    REQUIRE(a.waits_for.size() == b.waits_for.size());
    for (std::uint32_t w = 0; w < a.waits_for.size(); ++w)
      REQUIRE(whole.waits[a.waits_for.begin + w].value - offset.op ==
              own.waits[b.waits_for.begin + w].value);
    REQUIRE(a.buffers.size() == b.buffers.size());
    for (std::uint32_t u = 0; u < a.buffers.size(); ++u) {
      BufferUse use = whole.buffer_uses[a.buffers.begin + u];
      REQUIRE(own.buffers[buffer(use.buffer).value] == whole.buffers[use.buffer.value]);
      use.buffer = buffer(use.buffer);
      REQUIRE(use == own.buffer_uses[b.buffers.begin + u]);
    }
    if (auto* exchange = std::get_if<Exchange>(&a.what)) {
      const auto& other = std::get<Exchange>(b.what);
      REQUIRE(exchange->messages.size() == other.messages.size());
      for (std::uint32_t m = 0; m < other.messages.size(); ++m)
        REQUIRE(whole.exchange_messages[exchange->messages.begin + m] ==
                own.exchange_messages[other.messages.begin + m]);
      exchange->messages = other.messages;
    }
    if (auto* compute = std::get_if<Compute>(&a.what))
      compute->params = moved(compute->params, offset.params);
    if (auto* collective = std::get_if<Collective>(&a.what))
      collective->params = moved(collective->params, offset.params);
    if (auto* update = std::get_if<Update>(&a.what))
      update->params = {update->params.begin - offset.params, update->params.end - offset.params};
    REQUIRE(a.what == b.what);
  }
}

}  // namespace

TEST_CASE("a rank's own part of the Program") {
  Scenario scenario = examples::small_on_cpu(8, 16);
  ModuleLayout encoder, language;
  encoder.ranks = 2;
  language.first_rank = 2;
  language.ranks = 4;
  language.pp = 2;
  language.shard = Shard::full;
  Layout apart{.placement = Placement::non_colocated,
               .modules = {encoder, encoder, language},
               .microbatches = 4};
  ModuleLayout both;
  both.ranks = 8;
  both.tp = both.pp = both.vpp = 2;
  both.sp = true;
  const Layout one{.placement = Placement::homogeneous,
                   .modules = {both, both, both},
                   .schedule = ScheduleKind::zero_bubble_v,
                   .microbatches = 4};
  ModuleLayout wide = both;
  wide.tp = wide.pp = wide.vpp = 1;
  wide.sp = false;
  both.vpp = 1;
  const Layout shared{.placement = Placement::colocated,
                      .modules = {wide, wide, both},
                      .schedule = ScheduleKind::zero_bubble,
                      .microbatches = 4};
  for (const Layout& layout : {apart, one, shared}) {
    CAPTURE(name(layout.placement));
    REQUIRE_FALSE(check_layout(scenario, layout).has_value());
    const Plan plan = make_plan(scenario, layout);
    const Batch batch = typical_batch(scenario);
    const StepPlan step = make_step_plan(scenario, layout, plan, batch);
    for (const StepKind kind : {StepKind::train, StepKind::evaluate}) {
      const Program whole = lower(scenario, layout, plan, step, batch, kind);
      std::uint32_t common = 0;  // buffers of messages: made before any rank's own
      for (const Message& message : whole.messages)
        common = std::max({common, message.from.value + 1, message.to.value + 1});
      for (std::uint32_t r = 0; r < whole.ranks; ++r)
        check_part(whole, lower_rank(scenario, layout, plan, step, batch, Rank(r), kind), Rank(r),
                   common);
    }
  }
}
