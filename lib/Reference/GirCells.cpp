#include "Reference/GirCells.h"

#include "Gir/Walk.h"
#include "Support/Half.h"

#include <cstring>

namespace fusec::girvm {

namespace {

template <typename T> T fromBytes(const uint8_t *bytes) {
  T v;
  std::memcpy(&v, bytes, sizeof v);
  return v;
}
template <typename T> void toBytes(uint8_t *bytes, T v) { std::memcpy(bytes, &v, sizeof v); }

Cell intCell(int64_t v) { return Cell{.i = v}; }
Cell floatCell(float v) {
  Cell c{.i = 0};
  c.f = v;
  return c;
}

} // namespace

Cell loadCell(DType type, const uint8_t *bytes) {
  switch (type) {
  case DType::Bool: return intCell(*bytes != 0);
  case DType::U8: return intCell(*bytes);
  case DType::I8: return intCell(fromBytes<int8_t>(bytes));
  case DType::I16: return intCell(fromBytes<int16_t>(bytes));
  case DType::U16: return intCell(fromBytes<uint16_t>(bytes));
  case DType::I32: return intCell(fromBytes<int32_t>(bytes));
  case DType::U32: return intCell(fromBytes<uint32_t>(bytes));
  case DType::I64:
  case DType::U64: return intCell(fromBytes<int64_t>(bytes));
  case DType::F16: return floatCell(halfToFloat(fromBytes<uint16_t>(bytes)));
  case DType::BF16: return floatCell(bfloatToFloat(fromBytes<uint16_t>(bytes)));
  case DType::F32: return floatCell(fromBytes<float>(bytes));
  case DType::F64: return Cell{.d = fromBytes<double>(bytes)};
  }
  return intCell(0);
}

void storeCell(DType type, uint8_t *bytes, Cell v) {
  switch (type) {
  case DType::Bool:
  case DType::U8:
  case DType::I8: *bytes = static_cast<uint8_t>(v.i); return;
  case DType::I16:
  case DType::U16: return toBytes(bytes, static_cast<uint16_t>(v.i));
  case DType::I32:
  case DType::U32: return toBytes(bytes, static_cast<uint32_t>(v.i));
  case DType::I64:
  case DType::U64: return toBytes(bytes, v.i);
  case DType::F16: return toBytes(bytes, halfFromFloat(v.f));
  case DType::BF16: return toBytes(bytes, bfloatFromFloat(v.f));
  case DType::F32: return toBytes(bytes, v.f);
  case DType::F64: return toBytes(bytes, v.d);
  }
}

Cells::Cells(const GirKernel &kernel, const std::vector<int64_t> &symbols)
    : kernel(kernel), varying(laneVarying(kernel)), pure(kernel.body.nodes.size(), true),
      columns(kernel.body.nodes.size()), code(kernel.body.nodes.size()), ofVar(kernel.vars.size()),
      axisNode(kernel.vars.size(), kNoNode) {
  const Body &body = kernel.body;
  // Outer loops have lower numbers than the loops inside them in a canonical kernel.
  std::vector<VarId> innermost(body.nodes.size(), -1);
  size_t total = 0;
  for (size_t id = 0; id < columns.size(); ++id)
    total += varying[id] ? static_cast<size_t>(kernel.lanes) : 1;
  storage.assign(total, Cell{.i = 0});
  Cell *next = storage.data();
  for (NodeId id = 0; id < static_cast<NodeId>(columns.size()); ++id) {
    const Scalar &s = body[id];
    columns[id] = next;
    next += varying[id] ? kernel.lanes : 1;
    bool reads = s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf;
    pure[id] = !reads;
    for (NodeId a : s.args) {
      pure[id] = pure[id] && pure[a];
      innermost[id] = std::max(innermost[id], innermost[a]);
    }
    if (s.op == ScalarOp::Const) {
      if (!isFloat(s.type))
        *columns[id] = intCell(s.imm);
      else
        *columns[id] =
            s.type == DType::F64 ? Cell{.d = s.fimm} : floatCell(static_cast<float>(s.fimm));
    } else if (s.op == ScalarOp::Dim) {
      *columns[id] = intCell(s.dim.evaluate(symbols).value_or(0));
    } else if (s.op == ScalarOp::Axis) {
      axisNode[s.index] = id;
      innermost[id] = s.index;
    } else if (!reads) {
      Instruction &in = code[id];
      in.op = s.op;
      in.type = s.type;
      in.operandType = body[s.args.back()].type;
      in.out = columns[id];
      for (size_t i = 0; i < s.args.size(); ++i) {
        in.operands[i] = columns[s.args[i]];
        in.steps[i] = step(s.args[i]);
      }
      in.run = functionFor(s.op, s.type, in.operandType);
      if (pure[id] && innermost[id] >= 0)
        ofVar[innermost[id]].push_back(id);
      else if (pure[id])
        evaluate(id, 1);
    }
  }
}

void Cells::place(VarId var) {
  for (NodeId id : ofVar[var])
    evaluate(id, kernel.lanes);
}

void Cells::setVar(VarId var, int64_t value) {
  if (axisNode[var] != kNoNode)
    *columns[axisNode[var]] = intCell(value);
  place(var);
}

void Cells::setLaneVar(VarId var) {
  if (axisNode[var] != kNoNode)
    for (int l = 0; l < kernel.lanes; ++l)
      columns[axisNode[var]][l] = intCell(l);
  place(var);
}

std::vector<NodeId> Cells::impure(const std::vector<NodeId> &roots) const {
  std::vector<NodeId> out;
  for (NodeId id : kernel.body.reachable(roots))
    if (!pure[id])
      out.push_back(id);
  return out;
}

} // namespace fusec::girvm
