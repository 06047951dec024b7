// Uses the installed library: loads a scenario, searches its layouts, and simulates the best one.
//   example SCENARIO
#include <iostream>
#include <string>
#include <variant>

#include "shared/error.h"
#include "shared/scenario/typical_batch.h"
#include "shared/text/figure_text.h"
#include "sim/load/load.h"
#include "sim/step_answers/step.h"
#include "sim/sweep/sweep.h"

using namespace polyphony;

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: example SCENARIO\n";
    return 2;
  }
  try {
    const Scenario scenario = sim::load_scenario(arguments[1]);
    const HardwareProfile profile = sim::load_profile(scenario);

    const sim::Sweep found = sim::sweep(scenario, profile, {.jobs = 2});
    if (found.ranked.empty()) {
      std::cerr << "no layout fits\n";
      return 3;
    }
    const sim::Candidate& best = found.ranked.front();
    std::cout << "best layout: " << best.text << "\n";

    const auto answer =
        sim::answer_step(scenario, best.layout, typical_batch(scenario), profile, {});
    if (const auto* no = std::get_if<Infeasible>(&answer)) {
      std::cerr << no->reason << "\n";
      return 3;
    }
    const sim::StepAnswer& step = std::get<sim::StepAnswer>(answer);
    std::cout << "step: " << seconds_text(step.prediction.step()) << "\n";
  } catch (const InputError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
