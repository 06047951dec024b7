# polyphony_shipped_files(OUTPUT DEVICES file... FITS file...): OUTPUT holds the texts of the files, in their order, for
# shared/hardware/shipped_files.h. It is written again when a file has changed. As a script:
# cmake -DSOURCE=... -DOUTPUT=... "-DDEVICES=a b" "-DFITS=a b" -P shipped_files.cmake, with paths relative to SOURCE.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Written by scripts/cmake/shipped_files.cmake.
#include \"shared/hardware/shipped_files.h\"

namespace polyphony {
")
  foreach(kind device fit)
    string(TOUPPER ${kind} list)
    string(APPEND text "
std::span<const ShippedFile> ${kind}_files() {
  static constexpr ShippedFile kFiles[] = {
")
    separate_arguments(paths UNIX_COMMAND "${${list}S}")
    foreach(path ${paths})
      file(READ ${SOURCE}/${path} content)
      string(APPEND text "      {\"${path}\", R\"json(${content})json\"},\n")
    endforeach()
    string(APPEND text "  };
  return kFiles;
}
")
  endforeach()
  string(APPEND text "
}  // namespace polyphony
")
  file(WRITE ${OUTPUT} "${text}")
  return()
endif()

function(polyphony_shipped_files output)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEVICES;FITS")
  set(files ${arg_DEVICES} ${arg_FITS})
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
  list(JOIN arg_DEVICES " " devices)
  list(JOIN arg_FITS " " fits)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} "-DDEVICES=${devices}" "-DFITS=${fits}"
            -P ${PROJECT_SOURCE_DIR}/scripts/cmake/shipped_files.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/scripts/cmake/shipped_files.cmake
    COMMENT "" VERBATIM)
endfunction()
