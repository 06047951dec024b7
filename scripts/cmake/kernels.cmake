# Our own kernels (exec/cuda/*.cu), compiled by nvcc for GPUs of these compute capabilities, and as PTX for later ones. Not
# CMake's own CUDA language: it would try out the toolkit in every configuration, and ask for one where none is needed.
set(polyphony_capabilities 8.0 9.0 10.0)
set(POLYPHONY_KERNELS AUTO CACHE STRING "Our own kernels: ON, OFF (ATen's alone), or AUTO, when builds are for GPUs and there is an nvcc of the same CUDA")
set(polyphony_kernels OFF)
if(polyphony_nccl AND NOT POLYPHONY_KERNELS STREQUAL OFF)
  find_program(POLYPHONY_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  if(POLYPHONY_NVCC)
    execute_process(COMMAND ${POLYPHONY_NVCC} --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+)" _ "${nvcc_text}")
    set(nvcc_major "${CMAKE_MATCH_1}")
    # What nvcc makes calls the runtime that LibTorch brings.
    file(STRINGS ${POLYPHONY_TORCH_ROOT}/nvidia/cu13/include/cuda_runtime_api.h line REGEX "^#define CUDART_VERSION")
    string(REGEX REPLACE "[^0-9]*([0-9]+)[0-9][0-9][0-9]$" "\\1" runtime_major "${line}")
    if(nvcc_major STREQUAL runtime_major)
      set(polyphony_kernels ON)
    else()
      set(why_no_kernels "${POLYPHONY_NVCC} is of CUDA ${nvcc_major}, LibTorch's of ${runtime_major}")
    endif()
  else()
    set(why_no_kernels "there is no nvcc")
  endif()
  if(NOT polyphony_kernels)
    if(POLYPHONY_KERNELS STREQUAL ON)
      message(FATAL_ERROR "POLYPHONY_KERNELS=ON, but ${why_no_kernels}.")
    endif()
    message(STATUS "No kernels of our own, GPUs run ATen's: ${why_no_kernels}.")
  endif()
endif()

# polyphony_kernels(TARGET KERNELS file.cu... CALLERS file.cpp...): compiled into TARGET; kernels know nothing of LibTorch. Callers are told
# for which GPUs; of them alone, so that everything else is the same object in either build.
function(polyphony_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "KERNELS;CALLERS")
  list(JOIN polyphony_capabilities ", " built_for)
  set_source_files_properties(${arg_CALLERS} PROPERTIES COMPILE_DEFINITIONS "POLYPHONY_KERNELS=\"${built_for}\"")
  set(codes "")
  foreach(capability IN LISTS polyphony_capabilities)
    string(REPLACE "." "" number ${capability})
    list(APPEND codes -gencode=arch=compute_${number},code=sm_${number})
  endforeach()
  string(REGEX REPLACE "code=sm_${number}$" "code=[sm_${number},compute_${number}]" codes "${codes}")  # the last one
  foreach(file IN LISTS arg_KERNELS)
    get_filename_component(name ${file} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/kernels
      COMMAND ${POLYPHONY_NVCC} -std=c++20 -O3 -Werror=all-warnings -ccbin=${CMAKE_CXX_COMPILER} -Xcompiler=-fPIC -I${PROJECT_SOURCE_DIR}
              ${codes}
              -MD -MT ${object} -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${file} -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file}
      DEPFILE ${object}.d
      COMMENT "Building kernels ${file}"
      VERBATIM)
    target_sources(${target} PRIVATE ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  endforeach()
endfunction()
