// The error of reading a Hugging Face configuration.
#pragma once

#include <string>

#include "shared/error.h"
#include "shared/model/hf_config.h"

namespace polyphony::test {

// Returns the error line; empty if the configuration is accepted.
inline std::string hf_refusal(const std::string& text, ModuleKind kind) {
  try {
    read_hf_config(text, "config.json", kind);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace polyphony::test
