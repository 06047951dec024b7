#include "exec/worker/step_list.h"

#include <doctest/doctest.h>

#include "shared/error.h"

using namespace polyphony;
using namespace polyphony::exec;

TEST_CASE("steps are numbers and ranges without their end") {
  const StepList list = parse_step_list("3,8:10,0", "--kineto");
  std::vector<std::int64_t> found;
  for (std::int64_t step = 0; step < 12; ++step)
    if (list.contains(step)) found.push_back(step);
  CHECK(found == std::vector<std::int64_t>{0, 3, 8, 9});
  CHECK(list.largest() == 9);
  CHECK(list.smallest() == 0);
  CHECK(parse_step_list("", "--kineto").empty());
  CHECK(parse_step_list("", "--kineto").largest() == -1);
}

TEST_CASE("other texts are no steps") {
  for (const char* text :
       {"a", "3,", ",3", "3:", "3:3", "4:3", "-1", "3 ", "3:5:7", "1.5", "99999999999999999999"})
    CHECK_THROWS_WITH_AS(parse_step_list(text, "--kineto"), doctest::Contains("must be steps"),
                         InputError);
}
