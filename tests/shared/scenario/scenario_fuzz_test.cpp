#include <doctest/doctest.h>

#include <chrono>

#include "shared/plan/plan.h"
#include "tests/shared/support/mutate.h"

using namespace polyphony;

TEST_CASE("2,000 mutations of valid scenarios are read or refused, never anything else") {
  int read = 0, refused = 0;
  double slowest = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string path;
    const std::string text = test::mutated_scenario(i, path);
    CAPTURE(i);
    CAPTURE(path);
    const auto start = std::chrono::steady_clock::now();
    try {
      const Scenario scenario = read_scenario(text, path, test::file_text);
      const std::string resolved = resolved_text(scenario);
      CHECK(resolved_text(read_scenario(resolved, path, test::file_text)) == resolved);
      if (scenario.layout) check_layout(scenario, *scenario.layout);
      ++read;
    } catch (const InputError& error) {
      ++refused;
      CHECK(error.what_is_wrong.size() > 3);
      CHECK(error.hint.size() > 3);
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
    } catch (const std::exception& error) {
      FAIL_CHECK("not an InputError: " << error.what() << "\n" << text);
    }
    slowest = std::max(
        slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  MESSAGE(read << " read, " << refused << " refused, slowest " << slowest << " s");
  CHECK(read > 100);  // the mutations are not all nonsense
  CHECK(refused > 1000);
  CHECK(slowest < 2);
}
