# Options and the flags that hold for every target.

option(FUSEC_TESTS "Build the tests" ON)
option(FUSEC_MODEL_TESTS "Tests that make and judge models with Python's onnx and onnxruntime" ON)
option(FUSEC_STATIC_TOOLS "Link fusec fully static, so that it runs on any Linux" ON)
option(FUSEC_SANITIZE "Address and undefined-behaviour sanitizers" OFF)
set(FUSEC_VENV ${PROJECT_SOURCE_DIR}/build/venv CACHE PATH "Python environment made by scripts/setup")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # Support, Bundle and Runtime also end up in libfusert.so
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# Asserts stay on in the release preset: they carry the IR context of a bug, and cost less than a wrong kernel.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELEASE "-O2")

add_library(fusecFlags INTERFACE)
target_compile_options(fusecFlags INTERFACE
  -Wall -Wextra -Werror -ffunction-sections -fdata-sections
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${PROJECT_BINARY_DIR}/=)
# gcc 12 sees the inactive members of moved std::variants as uninitialised reads, and overlapping copies in a literal
# plus a std::string. clang 19 complains of std::stable_sort in the headers of gcc 12.
target_compile_options(fusecFlags INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-restrict>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_link_options(fusecFlags INTERFACE -Wl,--gc-sections)
if(FUSEC_SANITIZE)
  # vptr needs RTTI, which LLVM's classes do not have. gcc 12 then sees operator new of one of them and operator delete
  # of its base as a wrong pair.
  set(sanitizers -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
  target_compile_options(fusecFlags INTERFACE ${sanitizers} -O1 -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
  target_link_options(fusecFlags INTERFACE ${sanitizers})
  set(FUSEC_STATIC_TOOLS OFF)
endif()

# GNU ld needs several times longer for the statically linked LLVM.
find_program(FUSEC_LLD NAMES ld.lld HINTS /usr/lib/llvm-19/bin)
if(FUSEC_LLD)
  get_filename_component(lldDir ${FUSEC_LLD} DIRECTORY)
  target_link_options(fusecFlags INTERFACE -fuse-ld=lld -B${lldDir})
endif()

# Results are shared by all build folders of one checkout. Precompiled headers need the sloppiness.
find_program(FUSEC_CCACHE ccache)
if(FUSEC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${FUSEC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
