# AMD: hipcc or amdclang++ of ROCm 6 or newer finds its own headers and device libraries. Debian's clang++-22 with
# libamdhip64-dev and rocm-device-libs works as well, with some help: the libraries are older than the compiler.
find_program(TRITAX_HIP_COMPILER NAMES hipcc amdclang++ clang++-22 HINTS /opt/rocm/bin /opt/rocm/llvm/bin REQUIRED)
find_library(TRITAX_AMDHIP amdhip64 HINTS /opt/rocm/lib REQUIRED)
find_path(TRITAX_HIP_INCLUDE hip/hip_runtime.h HINTS /opt/rocm/include REQUIRED)

set(TRITAX_GPU_ARCHITECTURES "gfx942" CACHE STRING "AMD targets: gfx90a, gfx942, gfx950")
set(TRITAX_GPU_COMPILE ${TRITAX_HIP_COMPILER} -x hip -std=c++20 -O3 -fPIC -D__HIP_PLATFORM_AMD__=1 -I${PROJECT_SOURCE_DIR})
foreach(arch ${TRITAX_GPU_ARCHITECTURES})
  list(APPEND TRITAX_GPU_COMPILE --offload-arch=${arch})
endforeach()
set(TRITAX_GPU_DEPENDS "")

get_filename_component(compiler_name ${TRITAX_HIP_COMPILER} NAME)
set(debian_bitcode /usr/lib/x86_64-linux-gnu/amdgcn/bitcode)
if(compiler_name MATCHES "^clang" AND EXISTS ${debian_bitcode})
  # The driver asks for one file a target; for what this code calls, gfx940's serves all that Debian does not know.
  set(bitcode ${CMAKE_CURRENT_BINARY_DIR}/bitcode)
  file(MAKE_DIRECTORY ${bitcode})
  file(GLOB files ${debian_bitcode}/*.bc)
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${bitcode}/${name} SYMBOLIC)
  endforeach()
  foreach(isa 942 950)
    if(NOT EXISTS ${bitcode}/oclc_isa_version_${isa}.bc)
      file(CREATE_LINK ${debian_bitcode}/oclc_isa_version_940.bc ${bitcode}/oclc_isa_version_${isa}.bc SYMBOLIC)
    endif()
  endforeach()
  list(APPEND TRITAX_GPU_COMPILE --rocm-path=/usr --rocm-device-lib-path=${bitcode} -mcode-object-version=5
       -D__AMDGCN_WAVEFRONT_SIZE=64 -Wno-unused-command-line-argument)
endif()

# Debian's clang-22 comes without clang-offload-bundler unless clang-tools-22 is installed; an older one writes the same
# format but spells its options differently.
get_filename_component(compiler_root ${TRITAX_HIP_COMPILER} REALPATH)
get_filename_component(compiler_root ${compiler_root} DIRECTORY)
if(compiler_name MATCHES "^clang" AND NOT EXISTS ${compiler_root}/clang-offload-bundler)
  find_program(TRITAX_OLD_BUNDLER NAMES clang-offload-bundler clang-offload-bundler-14 REQUIRED)
  set(bundler ${CMAKE_CURRENT_BINARY_DIR}/bundler/clang-offload-bundler)
  file(WRITE ${bundler} "#!/bin/sh
# Translates the options of clang-offload-bundler 15 and newer to those before.
for argument in \"$@\"; do
  shift
  case \"$argument\" in
    -input=*) inputs=\"\${inputs:+$inputs,}\${argument#-input=}\" ;;
    -output=*) set -- \"$@\" \"-outputs=\${argument#-output=}\" ;;
    *) set -- \"$@\" \"$argument\" ;;
  esac
done
exec ${TRITAX_OLD_BUNDLER} \"$@\" \"-inputs=$inputs\"
")
  file(CHMOD ${bundler} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(TRITAX_GPU_COMPILE ${CMAKE_COMMAND} -E env "PATH=${CMAKE_CURRENT_BINARY_DIR}/bundler:$ENV{PATH}" ${TRITAX_GPU_COMPILE})
endif()

set(TRITAX_GPU_DEFINITIONS __HIP_PLATFORM_AMD__=1)
set(TRITAX_GPU_INCLUDES ${TRITAX_HIP_INCLUDE})
set(TRITAX_GPU_LIBRARIES ${TRITAX_AMDHIP})
