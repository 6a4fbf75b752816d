#pragma once
// Small models, built as protobuf messages and imported from a file as a user's would be.
#include "Onnx/Import.h"

#include "onnx-ml.pb.h"

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace fusec::test {

/// A dimension: a size, or a dim_param.
struct D {
  D(int v) : size(v) {}
  D(const char *s) : param(s) {}
  int64_t size = 0;
  std::string param;
};

inline void setType(onnx::ValueInfoProto &v, const std::string &name, int type,
                    const std::vector<D> &dims) {
  v.set_name(name);
  auto *t = v.mutable_type()->mutable_tensor_type();
  t->set_elem_type(type);
  t->mutable_shape();
  for (const D &d : dims) {
    auto *dim = t->mutable_shape()->add_dim();
    if (d.param.empty())
      dim->set_dim_value(d.size);
    else
      dim->set_dim_param(d.param);
  }
}

class ModelMaker {
public:
  onnx::ModelProto model;

  explicit ModelMaker(int opset = 18) {
    model.set_ir_version(10);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("g");
  }
  ModelMaker &input(const std::string &name, const std::vector<D> &dims,
                    int type = onnx::TensorProto::FLOAT) {
    setType(*model.mutable_graph()->add_input(), name, type, dims);
    return *this;
  }
  /// An output without a declared type.
  ModelMaker &output(const std::string &name) {
    model.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  ModelMaker &output(const std::string &name, const std::vector<D> &dims) {
    setType(*model.mutable_graph()->add_output(), name, onnx::TensorProto::FLOAT, dims);
    return *this;
  }
  onnx::NodeProto &node(const std::string &op, const std::vector<std::string> &in,
                        const std::vector<std::string> &out) {
    auto *n = model.mutable_graph()->add_node();
    n->set_op_type(op);
    n->set_name(op + "_" + (out.empty() ? "" : out[0]));
    for (const auto &i : in)
      n->add_input(i);
    for (const auto &o : out)
      n->add_output(o);
    return *n;
  }
  ModelMaker &ints(const std::string &name, const std::vector<int64_t> &values,
                   bool scalar = false) {
    auto *t = model.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::INT64);
    if (!scalar)
      t->add_dims(static_cast<int64_t>(values.size()));
    for (int64_t v : values)
      t->add_int64_data(v);
    return *this;
  }
  Result<Graph> import(ImportOptions options = {}) const {
    std::string path = "model-under-test.onnx";
    {
      std::ofstream out(path, std::ios::binary);
      model.SerializeToOstream(&out);
    }
    auto result = importOnnx(path, options);
    std::remove(path.c_str());
    return result;
  }
};

inline void attribute(onnx::NodeProto &n, const std::string &name, int64_t v) {
  auto *a = n.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(v);
}
inline void attribute(onnx::NodeProto &n, const std::string &name, const std::vector<int64_t> &v) {
  auto *a = n.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (int64_t x : v)
    a->add_ints(x);
}
inline void attribute(onnx::NodeProto &n, const std::string &name, const std::string &v) {
  auto *a = n.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(v);
}

/// Types of the graph's outputs, or the diagnostics, one a line.
inline std::string outcome(const Result<Graph> &g) {
  std::string text;
  if (!g.ok()) {
    for (const Diagnostic &d : g.errors())
      text += format(d) + "\n";
    return text;
  }
  for (ValueId id : g->body.outputs)
    text += typeText(g->value(id), g->symbols) + "\n";
  return text;
}

inline int count(const Graph &g, OpKind op) {
  int n = 0;
  for (const Node &node : g.body.nodes)
    n += node.op == op;
  return n;
}

} // namespace fusec::test
