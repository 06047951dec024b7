# How this project declares its libraries, programs and tests. Sources are listed by hand in each folder's CMakeLists.txt.

add_library(polyphony_options INTERFACE)  # our own code only; third-party headers come in as SYSTEM
target_include_directories(polyphony_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(polyphony_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wswitch-enum -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(polyphony_options INTERFACE -fpch-preprocess)  # ccache needs it for precompiled headers
endif()
if(POLYPHONY_SANITIZE)
  add_compile_options(-fsanitize=${POLYPHONY_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POLYPHONY_SANITIZE})
  # SimGrid's own stack switching confuses the sanitizers: sim/ runs its actors on threads when this is defined.
  add_compile_definitions(POLYPHONY_THREAD_CONTEXTS)
endif()

option(POLYPHONY_BATCHES "Compile up to 8 files of a folder as one: half the processor time" OFF)
# polyphony_batches(TARGET): with POLYPHONY_BATCHES, compiles files of one folder together, so that the headers that
# they share are read once. Such files must not use one name for two things. Batches follow the order of the list, so a
# new file changes those of its own folder only. CMake's UNITY_BUILD would do the same, with absolute paths in the files
# that it writes: ccache would then compile everything again in another clone.
function(polyphony_batches target)
  if(POLYPHONY_BATCHES)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL polyphony_batches_of ${target})")  # when all properties are set
  endif()
endfunction()
function(polyphony_batches_of target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$]*\\.cpp$")
  set(batches "")
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    set(own "")  # whether it is compiled in its own way
    foreach(property COMPILE_DEFINITIONS COMPILE_OPTIONS SKIP_PRECOMPILE_HEADERS)
      get_source_file_property(value ${source} ${property})
      if(value)
        set(own ON)
      endif()
    endforeach()
    if(own OR path MATCHES "^(\\.\\.|build)/")  # or generated
      continue()
    endif()
    get_filename_component(folder ${path} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND files_${folder} ${path})
    list(LENGTH files_${folder} count)
    math(EXPR batch "(${count} - 1) / 8")
    string(APPEND text_${folder}_${batch} "#include <${path}>\n")
    list(APPEND batches ${folder}_${batch})
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  list(REMOVE_DUPLICATES batches)
  foreach(batch IN LISTS batches)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/batches/${target}/${batch}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_${batch}}" @ONLY)
    target_sources(${target} PRIVATE ${file})
  endforeach()
  # GCC takes a file of a batch for a header, in which a type from an anonymous namespace would be a fault.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# polyphony_library(NAME SOURCES file... LINK target...)
function(polyphony_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} STATIC ${arg_SOURCES})
  polyphony_batches(${name})
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:polyphony_options>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
endfunction()

# polyphony_standard_header(TARGET): compiles TARGET with the precompiled header of standard headers: the compiler's
# front end takes half the time. Measured on 14 files of shared: 31 s without, 16 s with. GCC 12 then warns wrongly
# of array bounds where strings are added (GCC's PR 105651).
function(polyphony_standard_header target)
  target_precompile_headers(${target} PRIVATE <shared/text/standard_pch.h>)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
                                           $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
                                           $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>)
endfunction()

# polyphony_json_header(TARGET): compiles TARGET with the precompiled header of standard headers and nlohmann::json,
# a third less processor time. The angle brackets keep the checkout's path out of it, so that ccache recognizes it
# in another clone.
function(polyphony_json_header target)
  target_precompile_headers(${target} PRIVATE <shared/text/json_pch.h>)
endfunction()

# polyphony_program(NAME SOURCES file... LINK target...)
function(polyphony_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  polyphony_batches(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINK} polyphony_options)
endfunction()
