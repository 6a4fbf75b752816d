# fusecLLVM: LLVM 19 with the X86, NVPTX and AMDGPU targets and lld's ELF linker, as static libraries. Only Codegen
# links it directly, so only Codegen sees LLVM's headers.

find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)

# Debian's LLVMSupport drags in libz3.so (no static form; nothing here uses it) and the shared zlib and zstd.
get_target_property(deps LLVMSupport INTERFACE_LINK_LIBRARIES)
list(FILTER deps EXCLUDE REGEX "z3")
list(TRANSFORM deps REPLACE "ZLIB::ZLIB" "z")
list(TRANSFORM deps REPLACE "zstd::libzstd_shared" "zstd")
set_property(TARGET LLVMSupport PROPERTY INTERFACE_LINK_LIBRARIES ${deps})

# lld initialises every target that LLVM was built with: empty functions for those we leave out keep their code out of
# the program.
set(stubs "")
foreach(target ${LLVM_TARGETS_TO_BUILD})
  if(NOT target MATCHES "^(X86|NVPTX|AMDGPU)$")
    foreach(kind TargetInfo Target TargetMC AsmPrinter AsmParser)
      string(APPEND stubs "void LLVMInitialize${target}${kind}(void) {}\n")
    endforeach()
  endif()
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/gen/LlvmTargetStubs.c CONTENT "${stubs}")
add_library(fusecLlvmStubs STATIC ${PROJECT_BINARY_DIR}/gen/LlvmTargetStubs.c)
target_compile_options(fusecLlvmStubs PRIVATE -fvisibility=hidden)

llvm_map_components_to_libnames(llvmLibs
  Core Support Passes Linker BitReader BitWriter IRReader LTO Option WindowsDriver
  X86CodeGen X86Desc X86Info X86AsmParser
  NVPTXCodeGen NVPTXDesc NVPTXInfo
  AMDGPUCodeGen AMDGPUDesc AMDGPUInfo AMDGPUAsmParser)

add_library(fusecLLVM INTERFACE)
target_include_directories(fusecLLVM SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(fusecLLVM INTERFACE
  ${LLVM_LIBRARY_DIRS}/liblldELF.a ${LLVM_LIBRARY_DIRS}/liblldCommon.a fusecLlvmStubs ${llvmLibs})
