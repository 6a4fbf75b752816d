#pragma once
// A graph of the interpreter's operators as the model that imports as it.
#include "Models.h"

#include "Graph/Graph.h"
#include "Onnx/OpTable.h"

namespace fusec::test {

class ModelWriter {
public:
  /// One in `renamed` of the symbolic sizes has a name of its own in the model, whose nodes alone then say what it is;
  /// 0: none.
  explicit ModelWriter(const Graph &graph, size_t renamed = 0) : graph(graph), m(kNewestOpset) {
    size_t places = 0;
    for (ValueId id : graph.body.inputs) {
      std::vector<D> dims;
      for (const DimExpr &d : graph.value(id).shape) {
        if (d.isConst()) {
          dims.emplace_back(static_cast<int>(d.constValue()));
          continue;
        }
        std::string name = graph.symbols[static_cast<size_t>(d.symbolId())].name;
        if (renamed && ++places % renamed == 0)
          name += std::to_string(places);
        dims.emplace_back(name.c_str());
      }
      m.input(graph.value(id).name, dims, onnxType(graph.value(id).type));
    }
    for (const Value &v : graph.values)
      if (v.constant)
        write(*m.model.mutable_graph()->add_initializer(), v.name, *v.constant);
    for (const Node &n : graph.body.nodes)
      write(n);
    for (ValueId id : graph.body.outputs)
      m.output(graph.value(id).name);
  }
  const onnx::ModelProto &model() const { return m.model; }

private:
  static int onnxType(DType t) {
    using P = onnx::TensorProto;
    switch (t) {
    case DType::F64: return P::DOUBLE;
    case DType::F32: return P::FLOAT;
    case DType::F16: return P::FLOAT16;
    case DType::BF16: return P::BFLOAT16;
    case DType::I64: return P::INT64;
    case DType::I32: return P::INT32;
    case DType::I16: return P::INT16;
    case DType::I8: return P::INT8;
    case DType::U64: return P::UINT64;
    case DType::U32: return P::UINT32;
    case DType::U16: return P::UINT16;
    case DType::U8: return P::UINT8;
    case DType::Bool: return P::BOOL;
    }
    return P::UNDEFINED;
  }
  static void write(onnx::TensorProto &t, const std::string &name, const Constant &c) {
    t.set_name(name);
    t.set_data_type(onnxType(c.type));
    for (int64_t d : c.dims)
      t.add_dims(d);
    t.set_raw_data(c.bytes, static_cast<size_t>(c.sizeBytes));
  }

  std::string listed(const std::vector<int64_t> &values) {
    const std::string name = "list" + std::to_string(lists++);
    m.ints(name, values);
    return name;
  }

  /// What attributes of the graph are operands in the model, in this order.
  static std::vector<std::string> operandsOf(OpKind op) {
    using enum OpKind;
    switch (op) {
    case ReduceL1:
    case ReduceLogSumExp:
    case ReduceMax:
    case ReduceMean:
    case ReduceMin:
    case ReduceProd:
    case ReduceSum:
    case ReduceSumSquare:
    case Squeeze:
    case Unsqueeze: return {"axes"};
    case Slice: return {"starts", "ends", "axes", "steps"};
    case Pad: return {"pads"};
    default: return {};
    }
  }

  void write(const Node &n) {
    const std::vector<std::string> operands = operandsOf(n.op);
    std::vector<std::string> in, out;
    for (ValueId v : n.inputs)
      in.push_back(v == kNoValue ? "" : graph.value(v).name);
    for (size_t i = 0; i < operands.size(); ++i)
      in.insert(in.begin() + 1 + static_cast<std::ptrdiff_t>(i), listed(n.intsAttr(operands[i])));
    if (n.op == OpKind::Pad && n.inputs.size() > 1) // the graph's has an empty place for the pads
      in.erase(in.begin() + 2);
    for (ValueId v : n.outputs)
      out.push_back(v == kNoValue ? "" : graph.value(v).name);
    onnx::NodeProto &made =
        m.node(n.op == OpKind::SliceDynamic ? "Slice" : std::string(info(n.op).name), in, out);
    made.set_name(n.name);
    for (const auto &[key, value] : n.attributes)
      if (std::find(operands.begin(), operands.end(), key) == operands.end())
        write(*made.add_attribute(), key, value);
    const Shape &shape = graph.value(n.outputs[0]).shape;
    if (n.op == OpKind::Reshape && isStatic(shape) && numElements(shape).isConst(0))
      attribute(made, "allowzero", 1);
    if (made.op_type().starts_with("Reduce"))
      attribute(made, "noop_with_empty_axes", 1);
  }

  static void write(onnx::AttributeProto &a, const std::string &name, const Attribute &value) {
    a.set_name(name);
    if (const auto *i = std::get_if<int64_t>(&value)) {
      a.set_type(onnx::AttributeProto::INT);
      a.set_i(*i);
    } else if (const auto *f = std::get_if<double>(&value)) {
      a.set_type(onnx::AttributeProto::FLOAT);
      a.set_f(static_cast<float>(*f));
    } else if (const auto *s = std::get_if<std::string>(&value)) {
      a.set_type(onnx::AttributeProto::STRING);
      a.set_s(*s);
    } else if (const auto *list = std::get_if<std::vector<int64_t>>(&value)) {
      a.set_type(onnx::AttributeProto::INTS);
      for (int64_t v : *list)
        a.add_ints(v);
    } else if (const auto *type = std::get_if<DType>(&value)) {
      a.set_type(onnx::AttributeProto::INT);
      a.set_i(onnxType(*type));
    } else {
      a.set_type(onnx::AttributeProto::TENSOR);
      write(*a.mutable_t(), "", *std::get<ConstantRef>(value));
    }
  }

  const Graph &graph;
  ModelMaker m;
  int lists = 0;
};

} // namespace fusec::test
