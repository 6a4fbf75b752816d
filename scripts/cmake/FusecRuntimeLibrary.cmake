# libfusert, from lib/Runtime and the parts of Bundle and Support that it uses. Both forms need libc, libm (for sizes
# that graphs compute by roots and powers) and libpthread only, all three of glibc: libstdc++, libgcc and libsodium are
# inside, and nothing but fusert_* can be seen from outside.
#
#   fusertShared   the shared library
#   fusert_static  the archive: one object in which all other names are local, so that a C program links it without a
#                  C++ compiler, and a program with its own libstdc++ or libsodium meets no second definition

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(runtimeStages fusecRuntime fusecBundle fusecSupport)
# What the library needs of its host, stated in fusert.pc and in the README; test/Install compares it with the symbols.
set(FUSERT_LOWEST_GLIBC 2.35)

set(libraryDir ${PROJECT_BINARY_DIR}/libfusert)
set(exportDir ${PROJECT_SOURCE_DIR}/scripts/cmake/fusert)

add_library(fusert_static INTERFACE)
target_include_directories(fusert_static INTERFACE ${PROJECT_SOURCE_DIR}/include)
if(FUSEC_SANITIZE)
  # Sanitized objects need their run-time library, which the steps below would hide.
  target_link_libraries(fusert_static INTERFACE ${runtimeStages})
  return()
endif()

add_library(fusertShared SHARED $<TARGET_OBJECTS:fusecRuntime>)
target_include_directories(fusertShared INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(fusertShared PRIVATE fusecFlags ${runtimeStages})
target_link_options(fusertShared PRIVATE
  -static-libstdc++ -static-libgcc -Wl,--version-script=${exportDir}/fusert.map -Wl,--exclude-libs,ALL
  -Wl,-z,defs -Wl,-z,relro -Wl,-z,now $<$<CONFIG:Release>:-s>)
set_target_properties(fusertShared PROPERTIES
  OUTPUT_NAME fusert
  LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${libraryDir}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${exportDir}/fusert.map)

set(archive ${libraryDir}/libfusert.a)
list(TRANSFORM runtimeStages REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE stageArchives)
add_custom_command(
  OUTPUT ${archive}
  COMMAND ${exportDir}/merge-archive ${archive} ${CMAKE_CXX_COMPILER} ${LLVM_TOOLS_BINARY_DIR}/llvm-objcopy ${CMAKE_AR}
          ${stageArchives} ${FUSEC_SODIUM_ARCHIVE}
  DEPENDS ${runtimeStages} ${exportDir}/merge-archive
  COMMENT "libfusert.a" VERBATIM)
add_custom_target(fusertArchive ALL DEPENDS ${archive})
add_dependencies(fusert_static fusertArchive)
target_link_libraries(fusert_static INTERFACE ${archive} Threads::Threads m)

# Installed: both libraries, the C header, and what CMake and pkg-config users ask for.
install(TARGETS fusertShared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/include/fusec/runtime.h ${PROJECT_SOURCE_DIR}/include/fusec/bundle_format.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fusec COMPONENT runtime)
set(packageDir ${CMAKE_INSTALL_LIBDIR}/cmake/fusert)
configure_package_config_file(${exportDir}/fusertConfig.cmake.in ${PROJECT_BINARY_DIR}/gen/fusertConfig.cmake
  INSTALL_DESTINATION ${packageDir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gen/fusertConfigVersion.cmake COMPATIBILITY SameMajorVersion)
configure_file(${exportDir}/fusert.pc.in ${PROJECT_BINARY_DIR}/gen/fusert.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gen/fusertConfig.cmake ${PROJECT_BINARY_DIR}/gen/fusertConfigVersion.cmake
        DESTINATION ${packageDir} COMPONENT runtime)
install(FILES ${PROJECT_BINARY_DIR}/gen/fusert.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
