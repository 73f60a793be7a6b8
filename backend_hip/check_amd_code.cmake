# Run as a test of the AMD build: the device code must multiply with matrix instructions, keep no accumulator in scratch
# memory between them, and touch flags at system scope.
#
#   cmake -DMATMUL=kernels_bf16.s -DVECTOR=kernels_vector.s -P check_amd_code.cmake
file(READ ${MATMUL} matmul)
file(READ ${VECTOR} vector)

function(require text pattern what)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "the device code lacks ${what} (${pattern})")
  endif()
  message(STATUS "found ${what}")
endfunction()

require("${matmul}" "v_mfma_f32_32x32x8" "MFMA instructions")
require("${vector}" "_load_dword [^\n]*sc0 sc1" "system-scope loads of flags")
require("${vector}" "_store_dword [^\n]*sc0 sc1" "system-scope stores of flags")
require("${vector}" "buffer_wbl2 sc0 sc1" "system-scope releases")
require("${vector}" "buffer_inv sc0 sc1" "system-scope acquires")

# A run of matrix instructions of one K step, as the compiler emits it: nothing but other arithmetic and LDS reads between.
if(matmul MATCHES "v_mfma[^\n]*\n[^\n]*scratch_(load|store)[^\n]*\n[^\n]*v_mfma")
  message(FATAL_ERROR "an accumulator goes through scratch memory between matrix instructions")
endif()
