# Run as a test of the AMD build: the device code must multiply with matrix instructions, keep no accumulator in scratch
# memory between them, and touch flags at system scope.
#
#   cmake -DMATMUL=kernels_bf16.s -DMATMUL_FP32=kernels_fp32.s -DVECTOR=kernels_vector.s -P check_amd_code.cmake
file(READ ${MATMUL} matmul)
file(READ ${MATMUL_FP32} matmul_fp32)
file(READ ${VECTOR} vector)

function(require text pattern what)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "the device code lacks ${what} (${pattern})")
  endif()
  message(STATUS "found ${what}")
endfunction()

require("${matmul}" "v_mfma_f32_32x32x8" "MFMA instructions")
require("${matmul_fp32}" "v_mfma_f32_32x32x2_f32" "MFMA instructions of fp32")
require("${vector}" "_load_dword [^\n]*sc0 sc1" "system-scope loads of flags")
require("${vector}" "_store_dword [^\n]*sc0 sc1" "system-scope stores of flags")
require("${vector}" "buffer_wbl2 sc0 sc1" "system-scope releases")
require("${vector}" "buffer_inv sc0 sc1" "system-scope acquires")

# A run of matrix instructions of one K step, as the compiler emits it: nothing but other arithmetic and LDS reads between.
if(matmul MATCHES "v_mfma[^\n]*\n[^\n]*scratch_(load|store)[^\n]*\n[^\n]*v_mfma")
  message(FATAL_ERROR "an accumulator goes through scratch memory between matrix instructions")
endif()

# What does not fit into a lane's registers lies in scratch memory. In the kernels of 256x256 tiles 128 of 256 registers are
# accumulators, and what an operation needs between two of its steps does not all fit beside them: 112 at most, moved when an
# operation begins or ends and never within a K step. No other kernel spills.
string(REGEX MATCHALL "\\.name: +_Z[^\n]*matmul_kernel[^\n]*|\\.vgpr_spill_count: +[0-9]+" facts "${matmul}${matmul_fp32}")
set(kernel "")
set(kernels 0)
foreach(fact ${facts})
  if(fact MATCHES "name: +(.*)")
    set(kernel ${CMAKE_MATCH_1})
  elseif(fact MATCHES "count: +([0-9]+)")
    set(spilled ${CMAKE_MATCH_1})
    math(EXPR kernels "${kernels} + 1")
    set(limit 0)
    if(kernel MATCHES "Li256ELi256E")
      set(limit 112)
    endif()
    if(spilled GREATER limit)
      message(FATAL_ERROR "${kernel} spills ${spilled} vector registers; allowed: ${limit}")
    endif()
  endif()
endforeach()
if(kernels LESS 11)
  message(FATAL_ERROR "the device code lists ${kernels} matmul kernels, not eleven")
endif()
message(STATUS "found ${kernels} matmul kernels within their registers")
