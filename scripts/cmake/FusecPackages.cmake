# Libraries from the distribution, each behind one target that carries includes and the static form.

find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_program(FUSEC_PROTOC protoc REQUIRED)
find_program(FUSEC_FLATC flatc REQUIRED)

add_library(fusecFmt INTERFACE)
target_link_libraries(fusecFmt INTERFACE fmt::fmt-header-only)

add_library(fusecCli11 INTERFACE)
target_link_libraries(fusecCli11 INTERFACE CLI11::CLI11)

# A header only: who includes it defines XXH_INLINE_ALL, so that it cannot clash with another copy in the program that
# links libfusert.
find_path(xxhashInclude xxhash.h REQUIRED)
add_library(fusecXxhash INTERFACE)
target_include_directories(fusecXxhash SYSTEM INTERFACE ${xxhashInclude})

find_path(sodiumInclude sodium.h REQUIRED)
find_library(FUSEC_SODIUM_ARCHIVE libsodium.a REQUIRED)
add_library(fusecSodium INTERFACE)
target_include_directories(fusecSodium SYSTEM INTERFACE ${sodiumInclude})
target_compile_definitions(fusecSodium INTERFACE SODIUM_STATIC)
target_link_libraries(fusecSodium INTERFACE ${FUSEC_SODIUM_ARCHIVE} Threads::Threads)

# Planning allocates small pieces all the time: with glibc's allocator it takes 1.3 times as long.
find_path(jemallocInclude jemalloc/jemalloc.h REQUIRED)
find_library(FUSEC_JEMALLOC_ARCHIVE libjemalloc.a REQUIRED)
add_library(fusecJemalloc INTERFACE)
target_include_directories(fusecJemalloc SYSTEM INTERFACE ${jemallocInclude})
target_link_libraries(fusecJemalloc INTERFACE ${FUSEC_JEMALLOC_ARCHIVE} Threads::Threads)

# ONNX's schema, as messages with reflection: the importer's scan of the wire reads the descriptors, which the
# published file leaves out by asking for the lite runtime.
file(GLOB venvOnnxProto ${FUSEC_VENV}/lib/python3*/site-packages/onnx/onnx-ml.proto)
set(FUSEC_ONNX_PROTO "${venvOnnxProto}" CACHE FILEPATH "ONNX schema (onnx-ml.proto)")
if(NOT FUSEC_ONNX_PROTO AND venvOnnxProto)
  set_property(CACHE FUSEC_ONNX_PROTO PROPERTY VALUE ${venvOnnxProto})
endif()
if(NOT EXISTS "${FUSEC_ONNX_PROTO}")
  message(FATAL_ERROR "onnx-ml.proto not found: run scripts/setup or give -DFUSEC_ONNX_PROTO=<file>")
endif()
find_path(protobufInclude google/protobuf/message.h REQUIRED)
find_library(protobufArchive libprotobuf.a REQUIRED)
set(onnxGen ${PROJECT_BINARY_DIR}/gen/onnx)
file(MAKE_DIRECTORY ${onnxGen})
add_custom_command(
  OUTPUT ${onnxGen}/onnx-ml.pb.cc ${onnxGen}/onnx-ml.pb.h
  COMMAND sed "/LITE_RUNTIME/d" ${FUSEC_ONNX_PROTO} > ${onnxGen}/onnx-ml.proto
  COMMAND ${FUSEC_PROTOC} --cpp_out=${onnxGen} -I${onnxGen} ${onnxGen}/onnx-ml.proto
  DEPENDS ${FUSEC_ONNX_PROTO}
  COMMENT "ONNX messages from onnx-ml.proto")
add_library(fusecOnnxProto STATIC ${onnxGen}/onnx-ml.pb.cc ${onnxGen}/onnx-ml.pb.h)
target_include_directories(fusecOnnxProto SYSTEM PUBLIC ${onnxGen} ${protobufInclude})
target_link_libraries(fusecOnnxProto PUBLIC ${protobufArchive} z Threads::Threads)
target_compile_options(fusecOnnxProto PRIVATE -w -O1)

# The manifest's reader and writer.
find_path(flatbuffersInclude flatbuffers/flatbuffers.h REQUIRED)
set(manifestGen ${PROJECT_BINARY_DIR}/gen/manifest)
set(manifestSchema ${PROJECT_SOURCE_DIR}/lib/Bundle/Manifest.fbs)
add_custom_command(
  OUTPUT ${manifestGen}/Manifest_generated.h
  COMMAND ${FUSEC_FLATC} --cpp --scoped-enums -o ${manifestGen} ${manifestSchema}
  DEPENDS ${manifestSchema}
  COMMENT "Manifest_generated.h")
add_custom_target(fusecManifestHeader DEPENDS ${manifestGen}/Manifest_generated.h)
add_library(fusecManifest INTERFACE)
add_dependencies(fusecManifest fusecManifestHeader)
target_include_directories(fusecManifest SYSTEM INTERFACE ${manifestGen} ${flatbuffersInclude})
