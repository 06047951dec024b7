# cmake --install: the programs, and the library polyphony::core for find_package(Polyphony). An example that uses it:
# tests/system/library.
if(NOT POLYPHONY_SIM)
  return()
endif()

# What a program needs to load scenarios, search layouts and predict steps. It prints nothing, installs no signal
# handler, and may be used from several threads.
add_library(core INTERFACE)
target_link_libraries(core INTERFACE sim traces shared)
set(header_folder ${CMAKE_INSTALL_INCLUDEDIR}/polyphony)
foreach(library shared traces sim)
  target_include_directories(${library} PUBLIC $<INSTALL_INTERFACE:${header_folder}>)
  target_compile_features(${library} PUBLIC cxx_std_20)
endforeach()
install(TARGETS core shared traces sim EXPORT PolyphonyTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/polyphony)
install(EXPORT PolyphonyTargets NAMESPACE polyphony:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Polyphony)
foreach(folder shared traces)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${header_folder} FILES_MATCHING PATTERN "*.h")
endforeach()
foreach(room answer_json datasets evidence judged load plan_answers prediction published replay runner schedules
             step_answers sweep text)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/sim/${room} DESTINATION ${header_folder}/sim
          FILES_MATCHING PATTERN "*.h")
endforeach()

include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/scripts/cmake/PolyphonyConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/PolyphonyConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Polyphony
                              PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PolyphonyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PolyphonyConfig.cmake ${PROJECT_BINARY_DIR}/PolyphonyConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Polyphony)

set(programs polyphony polyphony-simulate)
if(POLYPHONY_EXEC)
  list(APPEND programs polyphony-worker)
endif()
# SimGrid and LibTorch stay in the cache of scripts/setup.
set_target_properties(${programs} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The Python package holds both programs of the simulator (pyproject.toml).
if(SKBUILD)
  install(TARGETS polyphony polyphony-simulate RUNTIME DESTINATION polyphony/bin COMPONENT python)
endif()
