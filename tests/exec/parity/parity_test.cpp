#include <doctest/doctest.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>

#include "shared/chunk/parameters.h"
#include "shared/lower/lower.h"
#include "shared/step/planned_step.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/parity/parity_order.h"
#include "tests/exec/reference/reference.h"

namespace polyphony::exec::testing {
namespace {

void check_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(complaint(c, run_in_process(c)) == "");
  }
}

// Returns every feature alone and every twelfth pair of features.
std::vector<Case> twelfth_of(const Matrix& matrix) {
  std::vector<Case> cases;
  std::size_t pairs = 0;
  for (const Case& c : matrix.cases)
    if (c.name.find(" + ") == std::string::npos || pairs++ % 12 == 0) cases.push_back(c);
  return cases;
}

// Trained parameters whose gradient is zero except for rounding.
std::set<std::string> zero_gradients(const Case& c) {
  const Scenario scenario = make_scenario(c);
  const std::unique_ptr<Dataset> dataset = make_dataset(c, scenario);
  const ReferenceStep step =
      Reference(scenario, torch::kFloat64).step(dataset->batch(0), *dataset, 1e-2);
  std::set<std::string> zero;
  for (const auto& [name, gradient] : step.gradients)
    if (gradient.norm().item<double>() < 1e-12 * step.gradient_norm) zero.insert(name);
  return zero;
}

}  // namespace

// scripts/parity, which scripts/nightly runs, takes all pairs: ten minutes.
TEST_SUITE("parity pairs") {
  TEST_CASE("every feature alone and every twelfth pair computes the step of the reference") {
    const std::vector<Case> cases = twelfth_of(parity_matrix());
    CHECK(cases.size() > 150);
    check_all(cases);
  }
}

TEST_SUITE("parity") {
  TEST_CASE("every layout computes the step of the reference") { check_all(parity_cases()); }
  TEST_CASE("every third mask and assignment of tokens computes the step of the reference") {
    check_all(sampled(3, mask_cases()));
  }
  TEST_CASE("published models, scaled down, compute the step of the reference") {
    check_all(sampled(2, published_cases()));
  }
  // At least 20 random batches. A deferred sample is a microbatch between a slot's own and the next
  // one's.
  TEST_CASE("planned steps with deferred samples compute the step of the reference") {
    const std::vector<Case> cases = planned_cases();
    int deferring = 0;
    for (const Case& c : cases) {
      const Scenario scenario = make_scenario(c);
      const Plan plan = make_plan(scenario, c.layout);
      const WorkTable works =
          planned_works(scenario.model, plan, make_dataset(c, scenario)->batch(0));
      const Range encoder = works.of_branch(0);
      deferring += std::any_of(works.works.begin() + encoder.begin,
                               works.works.begin() + encoder.end, [](const Work& work) {
                                 return work.index % 3 == 1 && work.items.begin < work.items.end;
                               });
    }
    CHECK(cases.size() > 40);
    CHECK(deferring > 24);
    check_all(sampled(2, cases));
  }
  TEST_CASE(
      "searched steps in sub-microbatches, some recomputed, compute the step of the reference") {
    const std::vector<Case> cases = searched_cases();
    int cut = 0, reordered = 0, mixed = 0;
    for (const Case& c : cases) {
      const Scenario scenario = make_scenario(c);
      const Plan plan = make_plan(scenario, c.layout);
      const StepPlan step =
          make_step_plan(scenario, c.layout, plan, make_dataset(c, scenario)->batch(0));
      const Range encoder = step.works.of_branch(0);
      cut += std::any_of(step.works.works.begin() + encoder.begin,
                         step.works.works.begin() + encoder.end, [](const Work& work) {
                           return work.index % 2 == 1 && work.items.begin < work.items.end;
                         });
      std::set<Recipe> recipes;
      for (const Actions& actions : step.orders)
        for (const Action& action : actions)
          if (is_forward(action)) recipes.insert(action.recipe);
      mixed += recipes.size() > 1;
      reordered += step.orders != make_orders(c.layout, plan).orders;
    }
    CHECK(cases.size() > 40);
    CHECK(cut > 30);
    CHECK(mixed > 4);
    CHECK(reordered > 40);
    check_all(sampled(2, cases));
  }
  // Measured memory equals the Program's, which does not count offloaded activations.
  TEST_CASE("layouts with offloaded activations compute the step of the reference") {
    const std::vector<Case> cases = offload_cases();
    CHECK(cases.size() > 20);
    for (const Case& c : cases) {
      INFO(c.name);
      const Scenario scenario = make_scenario(c);
      const Batch batch = make_dataset(c, scenario)->batch(0);
      const Plan plan = make_plan(scenario, c.layout);
      const StepPlan step = make_step_plan(scenario, c.layout, plan, batch);
      if (c.layout.planner ==
          Planning::dip) {  // the planner chooses what to offload, and not all is offloaded
        std::set<Recipe> recipes;
        for (const Actions& actions : step.orders)
          for (const Action& action : actions)
            if (is_forward(action)) recipes.insert(action.recipe);
        CHECK(recipes.count(Recipe::offload) == 1);
        CHECK(recipes.count(Recipe::none) == 1);
      }
      const Program program = lower(scenario, c.layout, plan, step, batch);
      const auto copies = std::count_if(program.ops.begin(), program.ops.end(), [](const Op& op) {
        return std::holds_alternative<HostCopy>(op.what);
      });
      CHECK(copies > 0);
    }
    check_all(cases);
  }
  TEST_CASE("random layouts and models compute the step of the reference") {
    check_all(random_cases(1, seeds_asked(20)));
  }
  TEST_CASE("fp32 stays within 1e-5 of the reference") { check_all(single_precision_cases()); }
  TEST_CASE("ten steps follow the loss curve of the reference") { check_all(curve_cases()); }

  // A zero gradient proves nothing. None is zero, except where no image feeds the encoder.
  TEST_CASE("the zero gradients are the expected ones") {
    Case c = parity_cases().front();
    CHECK(zero_gradients(c).empty());
    c.text_only = true;
    std::set<std::string> encoder;
    for (const Module& module : make_scenario(c).model.modules)
      for (const Parameter& parameter : parameters(module))
        if (module.kind != ModuleKind::language) encoder.insert(parameter.name);
    CHECK(zero_gradients(c) == encoder);
  }

  // The softmax over keys does not change when all scores of a query move together, and a key's
  // bias moves all of them by q·b: the key rows of vision's qkv.bias have no gradient. All other
  // rows of the bias have.
  TEST_CASE("the bias of keys has no gradient, those of queries and values have") {
    const Case c = parity_cases().front();
    const Scenario scenario = make_scenario(c);
    const Module& vision = scenario.model.modules.front();
    const std::unique_ptr<Dataset> dataset = make_dataset(c, scenario);
    const ReferenceStep step =
        Reference(scenario, torch::kFloat64).step(dataset->batch(0), *dataset, 1e-2);
    const torch::Tensor& gradient = step.gradients.at("vision.block0.qkv.bias");
    const torch::Tensor norms =
        gradient.view({vision.heads, 3, vision.head_dim}).norm(2, 2);  // [A, q k v]
    const double all = gradient.norm().item<double>();
    for (int head = 0; head < vision.heads; ++head) {
      CHECK(norms[head][0].item<double>() > 1e-3 * all);
      CHECK(norms[head][1].item<double>() < 1e-14 * all);
      CHECK(norms[head][2].item<double>() > 1e-3 * all);
    }
  }

  // What the tolerance detects: a RoPE base that is off by one part in ten thousand.
  TEST_CASE("a slightly wrong model is far out of tolerance") {
    const Case c = parity_cases().front();
    Scenario scenario = make_scenario(c);
    const std::unique_ptr<Dataset> dataset = make_dataset(c, scenario);
    const ReferenceStep right =
        Reference(scenario, torch::kFloat64).step(dataset->batch(0), *dataset, 1e-2);
    scenario.model.modules.back().rope_theta += 1;
    const ReferenceStep wrong =
        Reference(scenario, torch::kFloat64).step(dataset->batch(0), *dataset, 1e-2);
    const std::string name = "language.block0.qkv.weight";
    const torch::Tensor& gradient = right.gradients.at(name);
    CHECK((wrong.gradients.at(name) - gradient).norm().item<double>() >
          1e-8 * gradient.norm().item<double>());
  }

  TEST_CASE("complaints name the fault") {
    const Case c = parity_cases().front();
    CHECK(complaint(c, {1e-11, 0, 0, 0, "", "", ""}) == "loss off by 1e-11 > 1e-12 ; ");
    CHECK(complaint(c, {0, 0, NAN, 0, "w", "", ""}) == "gradient off by nan > 1e-09 w; ");
    CHECK(complaint(c, {0, 0, 0, 2e-9, "", "v", ""}) == "parameter off by 2e-09 > 1e-09 v; ");
    CHECK(complaint(c, {0, 0, 0, 0, "", "", "late"}) == "late; ");
  }

  // Two stages on two ranks. `time` gives each op its start, from its rank and its index there; all
  // ops take half a second.
  TEST_CASE("disorder is detected") {
    Case c = parity_cases().front();
    c.layout.microbatches = 2;
    for (ModuleLayout& layout : c.layout.modules) layout.pp = layout.ranks = 2;
    const Scenario scenario = make_scenario(c);
    const Program program = lower(scenario, c.layout, make_plan(scenario, c.layout),
                                  make_dataset(c, scenario)->batch(0));
    const auto disorder = [&](auto time) {
      std::vector<torch::Tensor> times;
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        std::vector<double> spans;
        for (std::uint32_t i = 0; i < program.rank_ops[rank].size(); ++i)
          spans.insert(spans.end(), {time(rank, i), time(rank, i) + 0.5});
        times.push_back(torch::tensor(spans, torch::kFloat64));
      }
      return find_disorder(program, times);
    };
    const auto ends_with = [](const std::string& text, const std::string& end) {
      INFO(text);
      CHECK((text.size() >= end.size() && text.substr(text.size() - end.size()) == end));
    };
    ends_with(disorder([](std::uint32_t, std::uint32_t) { return 0.0; }), "never ran");
    ends_with(disorder([](std::uint32_t, std::uint32_t) { return 1.0; }),
              "the op before it on its stream");
    ends_with(disorder([](std::uint32_t rank, std::uint32_t i) { return 1.0 + i + 1000.0 * rank; }),
              "ended before its receive began");
    ends_with(
        disorder([](std::uint32_t rank, std::uint32_t i) { return 1.0 + i + 1000.0 * (1 - rank); }),
        "ended before its send began");
  }

  // Not a test: printed by scripts/parity.
  TEST_CASE("parity table" * doctest::skip()) {
    std::printf("%-9s %-9s %-9s %-9s %6s  %s\n", "loss", "norm", "gradient", "parameter", "ms",
                "layout");
    int failed = 0;
    const Matrix matrix = parity_matrix();
    for (const std::vector<Case>& cases :
         {parity_cases(), published_cases(), mask_cases(), planned_cases(), searched_cases(),
          offload_cases(), single_precision_cases(), curve_cases(), matrix.cases}) {
      for (const Case& c : cases) {
        const auto begin = std::chrono::steady_clock::now();
        Outcome outcome;
        try {
          outcome = run_in_process(c);
        } catch (const std::exception& error) {
          outcome.fault = error.what();
        }
        const std::chrono::duration<double, std::milli> wall =
            std::chrono::steady_clock::now() - begin;
        const std::string wrong = complaint(c, outcome);
        failed += wrong.empty() ? 0 : 1;
        std::printf("%-9.1e %-9.1e %-9.1e %-9.1e %6.0f  %s%s\n", outcome.loss, outcome.norm,
                    outcome.gradient, outcome.parameter, wall.count(), c.name.c_str(),
                    wrong.empty() ? "" : ("  FAILS: " + wrong).c_str());
        std::fflush(stdout);
      }
    }
    std::printf("%zu pairs and features, %d refused, %d failed\n", matrix.cases.size(),
                matrix.refused, failed);
    CHECK(failed == 0);
  }
}

}  // namespace polyphony::exec::testing
