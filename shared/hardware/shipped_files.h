// The files of shared/hardware/devices and shared/hardware/fits, as text inside the library.
// scripts/cmake/shipped_files.cmake writes their source file at every build, in the order of
// shared/CMakeLists.txt, in which messages and tables list them.
#pragma once

#include <span>

namespace polyphony {

struct ShippedFile {
  const char* path;  // "shared/hardware/devices/h100.json"
  const char* text;
};

std::span<const ShippedFile> device_files();
std::span<const ShippedFile> fit_files();

}  // namespace polyphony
