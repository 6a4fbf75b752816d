# libfusert, from lib/Runtime and the parts of Bundle and Support that it uses. Both forms need libc and libpthread
# only: libstdc++ and libgcc are inside, and nothing but fusert_* can be seen from outside.

get_target_property(runtimeType fusecRuntime TYPE)
if(runtimeType STREQUAL "INTERFACE_LIBRARY")
  add_library(fusert_static INTERFACE)
  target_link_libraries(fusert_static INTERFACE fusecRuntime)
  return()
endif()
add_library(fusert_static INTERFACE)
target_link_libraries(fusert_static INTERFACE fusecRuntime)
