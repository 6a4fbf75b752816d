#pragma once
#include "Onnx/Import.h"

#include <string_view>

namespace google::protobuf {
class Descriptor;
}

namespace fusec {

/// Walks the bytes of a protobuf message before anything is allocated for it, guided by the schema, with
/// an explicit stack. Refuses: broken varints, lengths beyond the enclosing message, groups, field 0, wire
/// types other than the schema's, a singular field given twice (protobuf would merge or drop), nesting,
/// name lengths and node counts over the limits, nodes without an operator. Unknown fields pass.
Status scanWire(std::string_view bytes, const google::protobuf::Descriptor *message,
                const std::string &fileName, const Limits &limits);

} // namespace fusec
