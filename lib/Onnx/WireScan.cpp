#include "Onnx/WireScan.h"

#include "Support/Diag.h"

#include <google/protobuf/descriptor.h>

#include <vector>

namespace fusec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kMaxFrames = 220; // 32 subgraphs take three messages each, and types nest a little

struct Frame {
  const Descriptor *message;
  size_t end;
  uint64_t seen = 0; // bit = index of a singular field
};

class Scanner {
public:
  Scanner(std::string_view bytes, const std::string &fileName, const Limits &limits)
      : bytes(bytes), fileName(fileName), limits(limits) {}

  Status run(const Descriptor *root) {
    stack.push_back({root, bytes.size()});
    while (!stack.empty()) {
      if (pos == stack.back().end) {
        FUSEC_CHECK(leave());
        continue;
      }
      FUSEC_CHECK(field());
    }
    return success();
  }

private:
  Diagnostic malformed(const std::string &what) const {
    return {Diag::MalformedModel, fileName,
            what + " at byte " + std::to_string(pos) +
                "; the file is damaged or is not an ONNX model"};
  }
  Diagnostic tooMuch(const std::string &what) const {
    return {Diag::LimitExceeded, fileName, what};
  }

  Result<uint64_t> varint() {
    uint64_t v = 0;
    for (int i = 0; i < 10; ++i) {
      if (pos >= stack.back().end)
        return malformed("a number runs past the end of its message");
      uint8_t b = static_cast<uint8_t>(bytes[pos++]);
      if (i == 9 && b > 1)
        return malformed("a number does not fit into 64 bits");
      v |= static_cast<uint64_t>(b & 127) << (7 * i);
      if (!(b & 128))
        return v;
    }
    return malformed("a number is longer than 10 bytes");
  }

  static int wireTypeOf(const FieldDescriptor *f) {
    switch (f->type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64: return 1;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE: return 2;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32: return 5;
    default: return 0;
    }
  }

  Status field() {
    FUSEC_TRY(uint64_t tag, varint());
    uint64_t number = tag >> 3;
    int wire = static_cast<int>(tag & 7);
    if (number == 0 || number > 536870911)
      return malformed("field number " + std::to_string(number) + " does not exist");
    if (wire == 3 || wire == 4)
      return malformed("groups are not part of the format");
    if (wire > 5)
      return malformed("wire type " + std::to_string(wire) + " does not exist");
    const Descriptor *message = stack.back().message;
    const FieldDescriptor *f = message->FindFieldByNumber(static_cast<int>(number));
    if (f) {
      bool packed = wire == 2 && f->is_packable();
      if (wire != wireTypeOf(f) && !packed)
        return malformed("field '" + f->name() + "' of " + message->name() +
                         " has the wrong wire type");
      if (!f->is_repeated()) {
        uint64_t bit = uint64_t(1) << (f->index() & 63);
        if (stack.back().seen & bit)
          return malformed("field '" + f->name() + "' of " + message->name() + " is given twice");
        stack.back().seen |= bit;
      }
    }
    return payload(f, wire);
  }

  Status payload(const FieldDescriptor *f, int wire) {
    if (wire == 0) {
      FUSEC_TRY([[maybe_unused]] uint64_t value, varint());
      return success();
    }
    uint64_t length = wire == 1 ? 8 : 4;
    if (wire == 2) {
      FUSEC_TRY(length, varint());
    }
    if (length > stack.back().end - pos)
      return malformed("a field of " + std::to_string(length) +
                       " bytes runs past the end of its message");
    if (!f || wire != 2 || f->type() != FieldDescriptor::TYPE_MESSAGE) {
      if (f && f->type() == FieldDescriptor::TYPE_STRING &&
          length > static_cast<uint64_t>(limits.nameBytes) && f->name() != "doc_string" &&
          f->name() != "value" && f->name() != "denotation")
        return tooMuch("field '" + f->name() + "' of " + stack.back().message->name() + " has " +
                       std::to_string(length) + " bytes; names have at most " +
                       std::to_string(limits.nameBytes));
      pos += length;
      return success();
    }
    return enter(f->message_type(), length);
  }

  Status enter(const Descriptor *message, uint64_t length) {
    const std::string &kind = message->name();
    if (kind == "NodeProto") {
      if (++nodes > limits.nodes)
        return tooMuch("the model has more than " + std::to_string(limits.nodes) + " nodes");
    } else if (kind == "FunctionProto") {
      if (++functions > limits.functions)
        return tooMuch("the model has more than " + std::to_string(limits.functions) +
                       " functions");
    } else if (kind == "GraphProto") {
      if (++graphs > limits.subgraphDepth + 1)
        return tooMuch("subgraphs are nested more than " + std::to_string(limits.subgraphDepth) +
                       " deep");
    }
    if (stack.size() >= kMaxFrames)
      return tooMuch("messages are nested more than " + std::to_string(kMaxFrames) + " deep");
    stack.push_back({message, pos + length});
    return success();
  }

  Status leave() {
    const Frame &frame = stack.back();
    const std::string &kind = frame.message->name();
    if (kind == "GraphProto")
      --graphs;
    if (kind == "NodeProto") {
      const FieldDescriptor *op = frame.message->FindFieldByName("op_type");
      if (!(frame.seen >> op->index() & 1))
        return malformed("a node without an operator ends");
    }
    stack.pop_back();
    return success();
  }

  std::string_view bytes;
  const std::string &fileName;
  const Limits &limits;
  std::vector<Frame> stack;
  size_t pos = 0;
  int64_t nodes = 0, functions = 0;
  int graphs = 0;
};

} // namespace

Status scanWire(std::string_view bytes, const Descriptor *message, const std::string &fileName,
                const Limits &limits) {
  return Scanner(bytes, fileName, limits).run(message);
}

} // namespace fusec
