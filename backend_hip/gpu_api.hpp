// The GPU runtime API of this backend, in HIP's names.
//
// The AMD build includes HIP itself. The NVIDIA build maps the used calls to CUDA, one line each; sources
// above this header use only the HIP names. Device code that differs between the two vendors is in
// `device_amd.hpp` and `device_nvidia.hpp`, and nowhere else.
#pragma once

#if defined(TRITAX_GPU_NVIDIA)

#include <cuda.h>
#include <cuda_runtime.h>

#define hipError_t cudaError_t
#define hipSuccess cudaSuccess
#define hipErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessAlreadyEnabled
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError
#define hipDeviceProp_t cudaDeviceProp
#define hipGetDeviceCount cudaGetDeviceCount
#define hipGetDeviceProperties cudaGetDeviceProperties
#define hipSetDevice cudaSetDevice
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
#define hipDriverGetVersion cudaDriverGetVersion
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipMemGetInfo cudaMemGetInfo
#define hipMalloc cudaMalloc
#define hipFree cudaFree
#define hipHostMalloc cudaHostAlloc
#define hipHostFree cudaFreeHost
#define hipHostMallocMapped cudaHostAllocMapped
#define hipHostMallocPortable cudaHostAllocPortable
#define hipHostGetDevicePointer cudaHostGetDevicePointer
#define hipMemcpy cudaMemcpy
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDefault cudaMemcpyDefault
#define hipMemcpy2DAsync cudaMemcpy2DAsync
#define hipMemset cudaMemset
#define hipMemset2D cudaMemset2D
#define hipMemsetAsync cudaMemsetAsync
#define hipStream_t cudaStream_t
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamWaitEvent cudaStreamWaitEvent
#define hipEvent_t cudaEvent_t
#define hipEventCreate cudaEventCreate
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDisableTiming cudaEventDisableTiming
#define hipEventDestroy cudaEventDestroy
#define hipEventRecord cudaEventRecord
#define hipEventSynchronize cudaEventSynchronize
#define hipEventElapsedTime cudaEventElapsedTime
#define hipLaunchKernel cudaLaunchKernel
#define hipLaunchCooperativeKernel cudaLaunchCooperativeKernel
#define hipGetDevice cudaGetDevice
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipDeviceAttributeCooperativeLaunch cudaDevAttrCooperativeLaunch
#define hipFuncSetAttribute cudaFuncSetAttribute
#define hipFuncAttributes cudaFuncAttributes
#define hipFuncGetAttributes cudaFuncGetAttributes
#define hipFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize
#define hipOccupancyMaxActiveBlocksPerMultiprocessor cudaOccupancyMaxActiveBlocksPerMultiprocessor
#define hipGraph_t cudaGraph_t
#define hipGraphNode_t cudaGraphNode_t
#define hipGraphExec_t cudaGraphExec_t
#define hipKernelNodeParams cudaKernelNodeParams
#define hipGraphCreate cudaGraphCreate
#define hipGraphDestroy cudaGraphDestroy
#define hipGraphAddKernelNode cudaGraphAddKernelNode
#define hipGraphExecDestroy cudaGraphExecDestroy
#define hipGraphLaunch cudaGraphLaunch
#define hipGraphUpload cudaGraphUpload

inline cudaError_t hipGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

#else

#include <hip/hip_runtime.h>

#endif

#include <string>

#include "backend_hip/gpu_error.hpp"

namespace tritax::gpu {

#if defined(TRITAX_GPU_NVIDIA)
// A function of the driver as of a version of CUDA, asked from the runtime, so that nothing links against the
// driver library. Throws UserError where the driver is older.
void* driver_function(const char* name, unsigned int since);
#endif

// Throws GpuRuntimeError with the call, the place and the runtime's message when `error` is not success.
void check_gpu(hipError_t error, const char* call, const char* file, int line);

}  // namespace tritax::gpu

#define TRITAX_GPU_CHECK(call) ::tritax::gpu::check_gpu((call), #call, __FILE__, __LINE__)
