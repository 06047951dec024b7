# Compile through ccache when it is installed, so that a fresh clone anywhere on this machine reuses the compiled objects.
# BASEDIR and NOHASHDIR make the checkout's path not matter; the sloppiness is what precompiled headers need.
find_program(POLYPHONY_CCACHE ccache)
if(POLYPHONY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_DIR=${POLYPHONY_CACHE}/ccache
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${POLYPHONY_CCACHE})
endif()
