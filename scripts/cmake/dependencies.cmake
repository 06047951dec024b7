# Third-party libraries as imported targets. Debian's through find_package; SimGrid and LibTorch from scripts/setup's cache.

find_package(nlohmann_json 3.11 REQUIRED)
find_package(doctest REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
include(${doctest_DIR}/doctest.cmake)  # doctest_discover_tests

# Regular expressions and tables of Unicode, for shared/tokenizer. Debian's packages have no CMake package for all:
# they are linked by name, so that an installed Polyphony names no folder of this machine.
find_library(POLYPHONY_PCRE2 pcre2-8 REQUIRED)
find_library(POLYPHONY_UTF8PROC utf8proc REQUIRED)
# YAML and TOML, for sim/frameworks (toml++ is headers only).
find_library(POLYPHONY_YAML yaml-cpp REQUIRED)
find_path(POLYPHONY_TOML toml++/toml.h REQUIRED)
# XML, for sim/machines.
find_library(POLYPHONY_PUGIXML pugixml REQUIRED)

# Eigen's CMake package is not needed: it is headers only.
find_path(POLYPHONY_EIGEN Eigen/Dense PATH_SUFFIXES eigen3 REQUIRED)
add_library(eigen INTERFACE IMPORTED)
target_include_directories(eigen INTERFACE ${POLYPHONY_EIGEN})

function(require_file path)
  if(NOT EXISTS "${path}")
    message(FATAL_ERROR "${path} is missing. Run scripts/setup (scripts/setup --help explains), "
                        "or build one half only: -DPOLYPHONY_SIM=OFF or -DPOLYPHONY_EXEC=OFF.")
  endif()
endfunction()

find_package(Threads REQUIRED)
# Images and audio, for the executor's data sets (and their tests, which are built without LibTorch, too).
find_package(PNG REQUIRED)
find_library(POLYPHONY_TURBOJPEG turbojpeg REQUIRED)
find_library(POLYPHONY_WEBP webp REQUIRED)
find_library(POLYPHONY_WEBPDEMUX webpdemux REQUIRED)
find_library(POLYPHONY_SNDFILE sndfile REQUIRED)
if(POLYPHONY_SIM)
  find_package(cxxopts REQUIRED)
  # Without <regex>, which costs every file that includes cxxopts 4 s to compile.
  set_property(TARGET cxxopts::cxxopts APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS CXXOPTS_NO_REGEX)
  require_file(${POLYPHONY_SIMGRID_ROOT}/lib/libsimgrid.so)
  add_library(simgrid SHARED IMPORTED)
  set_target_properties(simgrid PROPERTIES
    IMPORTED_LOCATION ${POLYPHONY_SIMGRID_ROOT}/lib/libsimgrid.so
    INTERFACE_INCLUDE_DIRECTORIES ${POLYPHONY_SIMGRID_ROOT}/include)
endif()

if(POLYPHONY_EXEC)
  # Not find_package(Torch): the PyPI wheel's package insists on nvcc, even for the CPU part.
  set(torch ${POLYPHONY_TORCH_ROOT}/torch)
  require_file(${torch}/lib/libtorch_cpu.so)
  add_library(torch_c10 SHARED IMPORTED)
  set_target_properties(torch_c10 PROPERTIES IMPORTED_LOCATION ${torch}/lib/libc10.so)
  add_library(torch SHARED IMPORTED)
  set_target_properties(torch PROPERTIES
    IMPORTED_LOCATION ${torch}/lib/libtorch_cpu.so
    # NDEBUG: LibTorch was built with it, and the layout of at::RecordFunction depends on it. Our own checks do not.
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;NDEBUG"
    INTERFACE_INCLUDE_DIRECTORIES
      "${torch}/include;${torch}/include/torch/csrc/api/include;${PROJECT_SOURCE_DIR}/exec/gloo_stub"
    INTERFACE_LINK_OPTIONS "-Wl,--no-as-needed"
    INTERFACE_LINK_LIBRARIES "torch_c10;Threads::Threads")
endif()

# GPUs. No CUDA toolkit is needed: LibTorch's wheels bring headers and libraries (scripts/cmake/kernels.cmake uses one where there is one).
set(polyphony_nccl OFF)
if(POLYPHONY_EXEC AND POLYPHONY_NCCL STREQUAL AUTO AND EXISTS ${torch}/lib/libtorch_cuda.so)
  set(polyphony_nccl ON)
elseif(POLYPHONY_EXEC AND NOT POLYPHONY_NCCL STREQUAL AUTO)
  set(polyphony_nccl ${POLYPHONY_NCCL})
endif()
if(polyphony_nccl)
  require_file(${torch}/lib/libtorch_cuda.so)  # scripts/setup with POLYPHONY_CUDA=on keeps it
  set(nvidia ${POLYPHONY_TORCH_ROOT}/nvidia)
  add_library(torch_c10_cuda SHARED IMPORTED)
  set_target_properties(torch_c10_cuda PROPERTIES IMPORTED_LOCATION ${torch}/lib/libc10_cuda.so)
  add_library(torch_cuda SHARED IMPORTED)
  set_target_properties(torch_cuda PROPERTIES
    IMPORTED_LOCATION ${torch}/lib/libtorch_cuda.so
    INTERFACE_COMPILE_DEFINITIONS "USE_C10D_NCCL;POLYPHONY_NCCL"
    INTERFACE_INCLUDE_DIRECTORIES "${nvidia}/cu13/include;${nvidia}/nccl/include"
    # LibTorch's own run path finds cuBLAS, cuDNN and the rest at run time; they need not be named to link.
    INTERFACE_LINK_OPTIONS "-Wl,--unresolved-symbols=ignore-in-shared-libs"
    INTERFACE_LINK_LIBRARIES "torch;torch_c10_cuda;${nvidia}/cu13/lib/libcudart.so.13;${nvidia}/nccl/lib/libnccl.so.2")
endif()

# NCCL's headers and the CUDA headers that they include, which every build of the executor compiles exec/device/nccl.cpp with.
set(polyphony_nccl_include "")
if(POLYPHONY_EXEC)
  foreach(folder ${POLYPHONY_TORCH_ROOT} ${POLYPHONY_CACHE}/nccl-headers-${nccl_version})
    if(NOT polyphony_nccl_include AND EXISTS ${folder}/nvidia/nccl/include/nccl.h)
      set(polyphony_nccl_include ${folder}/nvidia/nccl/include ${POLYPHONY_TORCH_ROOT}/nvidia/cu13/include)
    endif()
  endforeach()
  if(NOT polyphony_nccl_include)
    message(STATUS "NCCL's headers are missing: exec/device/nccl.cpp is not compiled, and nccl_test is left out (scripts/setup nccl-headers).")
  endif()
endif()
