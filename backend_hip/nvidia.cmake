# NVIDIA: nvcc, sm_90a (wgmma and the bulk tensor copies are instructions of that target alone).
find_program(TRITAX_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin REQUIRED)
get_filename_component(cuda_root ${TRITAX_NVCC} REALPATH)
get_filename_component(cuda_root ${cuda_root} DIRECTORY)
get_filename_component(cuda_root ${cuda_root} DIRECTORY)
find_library(TRITAX_CUDART cudart_static HINTS ${cuda_root}/lib64 ${cuda_root}/targets/x86_64-linux/lib REQUIRED)
find_path(TRITAX_CUDA_INCLUDE cuda_runtime.h HINTS ${cuda_root}/include ${cuda_root}/targets/x86_64-linux/include REQUIRED)

set(TRITAX_GPU_ARCHITECTURES "90a" CACHE STRING "NVIDIA targets, without sm_")
set(gencode "")
foreach(arch ${TRITAX_GPU_ARCHITECTURES})
  list(APPEND gencode -gencode=arch=compute_${arch},code=sm_${arch})
endforeach()

set(TRITAX_GPU_DEFINITIONS TRITAX_GPU_NVIDIA=1)
set(TRITAX_GPU_INCLUDES ${TRITAX_CUDA_INCLUDE})
set(TRITAX_GPU_LIBRARIES ${TRITAX_CUDART} rt)
set(TRITAX_GPU_COMPILE ${TRITAX_NVCC} -x cu -std=c++20 -O3 ${gencode} -ccbin ${CMAKE_CXX_COMPILER}
    --expt-relaxed-constexpr -Xcompiler=-fPIC -DTRITAX_GPU_NVIDIA=1 -I${PROJECT_SOURCE_DIR})
set(TRITAX_GPU_DEPENDS "")
