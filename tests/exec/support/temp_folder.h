// Temporary folders for a test, and the text of an expected error.
#pragma once

#include <string>

#include "shared/error.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony::exec::testing {

using test::slurp;
using test::spill;
using test::TempFolder;

// The one line a user would see; empty when nothing was refused.
template <class Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace polyphony::exec::testing
