#include "shared/plan/require_layout.h"

namespace polyphony {

const Layout& require_layout(const Scenario& scenario) {
  if (!scenario.layout)
    throw InputError(scenario.file, "/layout", "is missing",
                     "`polyphony sweep --save DIR` writes scenarios with the best layouts");
  if (const auto no = check_layout(scenario, *scenario.layout))
    throw InputError(scenario.file, "/layout", no->reason,
                     "`polyphony sweep` lists the legal layouts");
  return *scenario.layout;
}

}  // namespace polyphony
