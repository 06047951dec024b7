#include "shared/scenario_io/run_record_json.h"

#include <doctest/doctest.h>

#include "tests/shared/support/scenario_files.h"

namespace polyphony {

using Lines = std::vector<std::string>;

TEST_CASE("differences that change a run, and differences that make another model") {
  const Scenario then = test::scenario_at("scenarios/tiny.json");
  const std::string record = run_record(then);
  const auto compare = [&](const Scenario& now) {
    return compare_records(record, run_record(now), "manifest.json");
  };
  Scenario now = then;
  now.layout.reset();
  now.cluster.nodes = 4;
  now.training.steps = 1000;
  CHECK(compare(now).changed.empty());
  CHECK(compare(now).another_model.empty());

  now.data.seed = then.data.seed + 1;
  now.data.global_batch = 16;
  now.training.learning_rate = 0.25;
  now.model.modules[0].trainable = Trainable::frozen;
  CHECK(compare(now).changed == Lines{"data.global_batch was 8, is 16", "data.seed was 1, is 2",
                                      "model.vision.train was \"full\", is \"frozen\"",
                                      "training.learning_rate was 0.001, is 0.25"});
  CHECK(compare(now).another_model.empty());

  // The same shapes, but other parameters.
  now = then;
  now.model.modules[2].heads = 2;
  now.model.modules[2].rope_theta = 5e5;
  CHECK(compare(now).changed.empty());
  CHECK(compare(now).another_model.size() == 2);
  CHECK(compare(now).another_model.front() == "model.language.heads was 4, is 2");
  CHECK_THROWS_AS(compare_records("[1", record, "manifest.json"), InputError);
}

}  // namespace polyphony
