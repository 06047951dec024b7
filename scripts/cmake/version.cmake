# Writes shared/version.cpp into the build folder at every build, if it would change: only that file depends on the
# commit. As a script: cmake -DSOURCE=... -DOUTPUT=... -DVERSION=... -DCOMPILER=... -DOPTIONS=... -P version.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  set(commit unknown)
  find_package(Git QUIET)
  if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --short=10 HEAD
                    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(commit ${head})
      execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} status --porcelain --untracked-files=no
                      OUTPUT_VARIABLE changed ERROR_QUIET)
      if(changed)
        string(APPEND commit "+")
      endif()
    endif()
  endif()
  set(text "// Written by scripts/cmake/version.cmake.
#include \"shared/version.h\"

namespace polyphony {

BuildInfo build_info() {
  return {\"${VERSION}\", \"${commit}\", \"${COMPILER}\", \"${OPTIONS}\"};
}

}  // namespace polyphony
")
  set(before "")
  if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} before)
  endif()
  if(NOT text STREQUAL before)
    file(WRITE ${OUTPUT} "${text}")
  endif()
  return()
endif()

set(options "$<CONFIG>")
if(POLYPHONY_SIM)
  string(APPEND options ", sim")
endif()
if(POLYPHONY_EXEC)
  string(APPEND options ", exec")
endif()
if(polyphony_nccl)
  string(APPEND options ", NCCL")
endif()
if(polyphony_kernels)
  string(APPEND options ", CUDA kernels")
endif()
if(POLYPHONY_SANITIZE)
  string(APPEND options ", sanitizers ${POLYPHONY_SANITIZE}")
endif()
set(polyphony_version_file ${PROJECT_BINARY_DIR}/version.cpp)
add_custom_target(polyphony_version
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${polyphony_version_file} -DVERSION=${PROJECT_VERSION}
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" "-DOPTIONS=${options}"
          -P ${CMAKE_CURRENT_LIST_DIR}/version.cmake
  BYPRODUCTS ${polyphony_version_file}
  COMMENT "" VERBATIM)
