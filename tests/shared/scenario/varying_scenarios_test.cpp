// scenarios/varying: the scenarios can be read and have legal layouts, also after changes of the
// form.
#include <doctest/doctest.h>

#include <filesystem>

#include "shared/check/check.h"
#include "shared/scenario_io/data_set.h"
#include "shared/validate/validate.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {

TEST_CASE("scenarios with varying data can be read and have legal layouts") {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("scenarios/varying")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".json") continue;
    CAPTURE(path);
    ++found;
    Scenario scenario = test::scenario_at(path);
    CHECK_NOTHROW(load_samples(scenario, "", test::file_text));
    CHECK_NOTHROW(validate(scenario));
    const auto no = check_layout(scenario, require_layout(scenario));
    CHECK_MESSAGE(!no, (no ? no->reason : std::string()));
  }
  CHECK(found >= 14);
}

}  // namespace polyphony
