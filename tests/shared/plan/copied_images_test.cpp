// Images that every context-parallel rank of an encoder encodes (Spread::copied).
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/program/expand_op.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/example_models.h"

using namespace polyphony;

namespace {

// One lane of `cp` ranks, of all modules.
Layout in_one_lane(int cp, Spread spread) {
  ModuleLayout grid;
  grid.cp = grid.ranks = cp;
  grid.spread = spread;
  Layout layout;
  layout.placement = Placement::homogeneous;
  layout.microbatches = 2;
  layout.modules = {grid, grid, grid};
  return layout;
}

// Two images in each of four samples.
Batch two_images() {
  Batch batch;
  for (std::uint32_t s = 0; s < 4; ++s)
    batch.samples.push_back({s,
                             {{Modality::image, 16, 0},
                              {Modality::text, 2, 0},
                              {Modality::image, 16, 0},
                              {Modality::text, 4, 2}}});
  return batch;
}

Program program_of(const Layout& layout) {
  const Scenario scenario = examples::small_on_cpu(12, 4);
  REQUIRE_FALSE(check_layout(scenario, layout));
  const Program program = lower(scenario, layout, make_plan(scenario, layout), two_images());
  REQUIRE(verify(program).empty());
  return program;
}

// FLOPs of the encoder on a rank.
double encoder_flops(const Program& program, Rank rank) {
  double flops = 0;
  const Range ops = program.ops_of(rank);
  for (std::uint32_t i = ops.begin; i < ops.end; ++i)
    if (const auto* compute = std::get_if<Compute>(&program.ops[i].what);
        compute && compute->module == ModuleId(0))
      flops += total_flops(expand(program, OpId(i))).value;
  return flops;
}

std::string refused(const Layout& layout) {
  const auto verdict = check_layout(examples::small_on_cpu(12, 4), layout);
  return verdict ? verdict->reason : "";
}

}  // namespace

TEST_CASE("each context-parallel rank encodes the images of its lane, or its share of them") {
  const double alone = encoder_flops(program_of(in_one_lane(1, Spread::samples)), Rank(0));
  const Program dealt = program_of(in_one_lane(2, Spread::samples)),
                copied = program_of(in_one_lane(2, Spread::copied));
  for (const Rank rank : {Rank(0), Rank(1)}) {
    CHECK(encoder_flops(dealt, rank) == doctest::Approx(alone / 2));
    CHECK(encoder_flops(copied, rank) == doctest::Approx(alone));
  }
  for (const Work& work : copied.works) CHECK(work.items.size() == 4);
  for (const Work& work : dealt.works) CHECK(work.items.size() == 2);
  // The rows that a rank needs are its own.
  for (const Message& message : copied.messages) CHECK(message.source == message.destination);
}

TEST_CASE("what copies are refused for") {
  CHECK(refused(in_one_lane(1, Spread::copied)).find("requires context parallelism (got cp 1)") !=
        std::string::npos);
  Layout apart = in_one_lane(2, Spread::copied);
  apart.placement = Placement::non_colocated;
  apart.modules[2].first_rank = 2;
  CHECK(refused(apart).find("applies only to an encoder") != std::string::npos);
  apart.modules[2].spread = Spread::samples;
  CHECK(refused(apart).empty());
}
