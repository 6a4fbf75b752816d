#include "Onnx/Import.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/WireScan.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace fusec {

/// Parses a message that scanWire() has accepted. protobuf's own bound on nesting is below ours.
static bool parseMessage(std::string_view bytes, google::protobuf::Message &message) {
  google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream in(&array);
  in.SetRecursionLimit(1000);
  in.SetTotalBytesLimit(INT32_MAX);
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

Result<Graph> importOnnx(const std::string &path, const ImportOptions &options,
                         Diagnostics *warnings) {
  onnx::ModelProto model;
  {
    FUSEC_TRY(Bytes bytes, readWholeFile(path, options.limits.modelBytes, "model"));
    std::string_view view(reinterpret_cast<const char *>(bytes->data()), bytes->size());
    if (view.empty())
      return Diagnostic{Diag::MalformedModel, path, "the file is empty"};
    FUSEC_CHECK(scanWire(view, onnx::ModelProto::descriptor(), path, options.limits));
    if (!parseMessage(view, model))
      return Diagnostic{Diag::MalformedModel, path, "the bytes are not an ONNX model"};
  }
  ImportMemory memory;
  Result<Graph> imported = Diagnostics{};
  // Each repetition tightens the bound of a symbol; a model has few.
  for (int round = 0; round < 16; ++round) {
    GraphBuilder builder(path, options, memory);
    imported = builder.run(model);
    if (warnings)
      *warnings = std::move(builder.warnings);
    if (imported.ok() || !builder.foundBound)
      break;
  }
  FUSEC_TRY(Graph graph, std::move(imported));
  FUSEC_TRY(graph, eliminateDeadCode(std::move(graph), {}));
  FUSEC_CHECK(verify(graph));
  return graph;
}

} // namespace fusec
