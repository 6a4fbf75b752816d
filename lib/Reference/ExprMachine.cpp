#include "Reference/ExprMachine.h"

#include "Support/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fusec::machine {
namespace {

template <typename T> T loadAs(const uint8_t *bytes, int64_t element) {
  T v;
  std::memcpy(&v, bytes + element * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}
template <typename T> void storeAs(uint8_t *bytes, int64_t element, T v) {
  std::memcpy(bytes + element * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

void roundLanes(DType type, Lane *d, int count) {
  if (type == DType::F32)
    for (int l = 0; l < count; ++l)
      d[l].f = static_cast<float>(d[l].f);
  else if (type != DType::F64)
    for (int l = 0; l < count; ++l)
      d[l].f = roundToType(type, d[l].f);
}

/// The frequent float operations, whole registers at a time. False when the operation is none of them.
bool fastFloat(ScalarOp op, Lane *d, const Lane *a, const Lane *b, const Lane *c, DType type,
               int count) {
  auto each = [&](auto f) {
    for (int l = 0; l < count; ++l)
      d[l].f = f(l);
    return true;
  };
  switch (op) {
  case ScalarOp::Add: return each([&](int l) { return a[l].f + b[l].f; });
  case ScalarOp::Sub: return each([&](int l) { return a[l].f - b[l].f; });
  case ScalarOp::Mul: return each([&](int l) { return a[l].f * b[l].f; });
  case ScalarOp::Div: return each([&](int l) { return a[l].f / b[l].f; });
  case ScalarOp::Neg: return each([&](int l) { return -a[l].f; });
  case ScalarOp::Abs: return each([&](int l) { return std::fabs(a[l].f); });
  case ScalarOp::Sqrt: return each([&](int l) { return std::sqrt(a[l].f); });
  case ScalarOp::Max:
    return each([&](int l) { return std::isnan(a[l].f) || a[l].f > b[l].f ? a[l].f : b[l].f; });
  case ScalarOp::Min:
    return each([&](int l) { return std::isnan(a[l].f) || a[l].f < b[l].f ? a[l].f : b[l].f; });
  case ScalarOp::Fma:
    if (type == DType::F64)
      return each([&](int l) { return std::fma(a[l].f, b[l].f, c[l].f); });
    return each([&](int l) {
      return std::fmaf(static_cast<float>(a[l].f), static_cast<float>(b[l].f),
                       static_cast<float>(c[l].f));
    });
  default: return false;
  }
}

/// The frequent i64 operations and those on bool.
bool fastInt(ScalarOp op, DType operandType, Lane *d, const Lane *a, const Lane *b, int count) {
  auto each = [&](auto f) {
    for (int l = 0; l < count; ++l)
      d[l].i = f(l);
    return true;
  };
  auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  bool floats = isFloat(operandType);
  if (!floats && operandType == DType::U64)
    return false;
  switch (op) {
  case ScalarOp::Add:
    return each([&](int l) { return static_cast<int64_t>(u(a[l].i) + u(b[l].i)); });
  case ScalarOp::Sub:
    return each([&](int l) { return static_cast<int64_t>(u(a[l].i) - u(b[l].i)); });
  case ScalarOp::Mul:
    return each([&](int l) { return static_cast<int64_t>(u(a[l].i) * u(b[l].i)); });
  case ScalarOp::And: return each([&](int l) { return a[l].i & b[l].i; });
  case ScalarOp::Or: return each([&](int l) { return a[l].i | b[l].i; });
  case ScalarOp::Lt:
    return floats ? each([&](int l) { return a[l].f < b[l].f; })
                  : each([&](int l) { return a[l].i < b[l].i; });
  case ScalarOp::Le:
    return floats ? each([&](int l) { return a[l].f <= b[l].f; })
                  : each([&](int l) { return a[l].i <= b[l].i; });
  case ScalarOp::Eq:
    return floats ? each([&](int l) { return a[l].f == b[l].f; })
                  : each([&](int l) { return a[l].i == b[l].i; });
  default: return false;
  }
}

} // namespace

int64_t Array::numElements() const {
  int64_t n = 1;
  for (int64_t d : dims)
    n *= d;
  return n;
}

void Array::allocate(DType type, std::vector<int64_t> newDims) {
  storage = type;
  dims = std::move(newDims);
  owned.assign(static_cast<size_t>(numElements() * sizeInBytes(type)), 0);
  bytes = owned.data();
}

ScalarValue load(const Array &a, int64_t e) {
  switch (a.storage) {
  case DType::Bool: return {loadAs<uint8_t>(a.bytes, e) != 0, 0};
  case DType::I8: return {loadAs<int8_t>(a.bytes, e), 0};
  case DType::I16: return {loadAs<int16_t>(a.bytes, e), 0};
  case DType::I32: return {loadAs<int32_t>(a.bytes, e), 0};
  case DType::U8: return {loadAs<uint8_t>(a.bytes, e), 0};
  case DType::U16: return {loadAs<uint16_t>(a.bytes, e), 0};
  case DType::U32: return {loadAs<uint32_t>(a.bytes, e), 0};
  case DType::I64:
  case DType::U64: return {loadAs<int64_t>(a.bytes, e), 0};
  case DType::F16: return {0, halfToDouble(loadAs<uint16_t>(a.bytes, e))};
  case DType::BF16: return {0, bfloatToDouble(loadAs<uint16_t>(a.bytes, e))};
  case DType::F32: return {0, loadAs<float>(a.bytes, e)};
  case DType::F64: return {0, loadAs<double>(a.bytes, e)};
  }
  return {};
}

void store(Array &a, int64_t e, ScalarValue v) {
  uint8_t *bytes = a.owned.data();
  switch (a.storage) {
  case DType::F16: return storeAs(bytes, e, halfFromDouble(v.f));
  case DType::BF16: return storeAs(bytes, e, bfloatFromDouble(v.f));
  case DType::F32: return storeAs(bytes, e, static_cast<float>(v.f));
  case DType::F64: return storeAs(bytes, e, v.f);
  default: break;
  }
  switch (sizeInBytes(a.storage)) { // little-endian: the low bytes
  case 1: return storeAs(bytes, e, static_cast<uint8_t>(v.i));
  case 2: return storeAs(bytes, e, static_cast<uint16_t>(v.i));
  case 4: return storeAs(bytes, e, static_cast<uint32_t>(v.i));
  default: return storeAs(bytes, e, v.i);
  }
}

Machine::Machine(const Body &body, const std::vector<NodeId> &roots,
                 const std::function<const Array *(TensorId)> &lookup,
                 const std::vector<int64_t> &symbols, int64_t step, bool floatsInDouble,
                 uint64_t reductionAxes)
    : registerOf(body.nodes.size(), -1) {
  auto computeType = [&](DType t) { return floatsInDouble && isFloat(t) ? DType::F64 : t; };
  int count = 0;
  for (const Scalar &s : body.nodes)
    if (s.op == ScalarOp::Axis)
      count = std::max(count, s.index + 1);
  std::vector<NodeId> ids = body.reachable(roots);
  for (NodeId id : ids)
    registerOf[id] = body[id].op == ScalarOp::Axis ? body[id].index : count++;
  registers.resize(static_cast<size_t>(count) * kLanes);
  std::vector<bool> reduced(body.nodes.size());
  for (NodeId id : ids) {
    const Scalar &s = body[id];
    reduced[id] = s.op == ScalarOp::State || s.op == ScalarOp::Part ||
                  (s.op == ScalarOp::Axis && (reductionAxes >> std::min(s.index, 63) & 1));
    for (NodeId a : s.args)
      reduced[id] = reduced[id] || reduced[a];
    Lane *out = lanes(registerOf[id]);
    auto fill = [&](int64_t i) { std::fill(out, out + kLanes, Lane{.i = i}); };
    switch (s.op) {
    case ScalarOp::Axis:
    case ScalarOp::State:
    case ScalarOp::Part: continue;
    case ScalarOp::Step: fill(step); continue;
    case ScalarOp::Dim: fill(s.dim.evaluate(symbols).value_or(0)); continue;
    case ScalarOp::Const:
      if (isFloat(s.type))
        std::fill(out, out + kLanes, Lane{.f = s.fimm});
      else
        fill(s.imm);
      continue;
    default: break;
    }
    Instruction in{
        s.op, computeType(s.type), DType::I64, registerOf[id], -1, -1, -1, {}, {}, nullptr, -1};
    bool isRead = s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf;
    size_t first = s.op == ScalarOp::ReadIf ? 2 : 0;
    if (isRead) {
      in.array = lookup(s.index);
      in.tensor = s.index;
      for (size_t i = first; i < s.args.size(); ++i)
        in.indices.push_back(registerOf[s.args[i]]);
      in.strides.assign(in.indices.size(), 1);
      for (size_t d = in.indices.size(); d-- > 1;)
        in.strides[d - 1] = in.strides[d] * in.array->dims[d];
    } else {
      in.operandType = computeType(body[s.args.back()].type);
      if (s.op == ScalarOp::Bitcast) { // bits are those of the declared types
        in.type = s.type;
        in.operandType = body[s.args[0]].type;
      }
    }
    int *slots[] = {&in.a, &in.b, &in.c};
    for (size_t i = 0; i < (isRead ? first : s.args.size()); ++i)
      *slots[i] = registerOf[s.args[i]];
    (reduced[id] ? rest : spatial).push_back(std::move(in));
  }
}

bool Machine::read(const Instruction &in, int count) {
  Lane *d = lanes(in.result);
  const Lane *predicate = in.a >= 0 ? lanes(in.a) : nullptr;
  const Lane *otherwise = in.b >= 0 ? lanes(in.b) : nullptr;
  int64_t address[kLanes];
  bool inside[kLanes];
  std::fill(address, address + count, 0);
  for (int l = 0; l < count; ++l)
    inside[l] = !predicate || predicate[l].i;
  bool fine = true;
  for (size_t k = 0; k < in.indices.size(); ++k) {
    const Lane *index = lanes(in.indices[k]);
    const auto extent = static_cast<uint64_t>(in.array->dims[k]);
    const int64_t stride = in.strides[k];
    for (int l = 0; l < count; ++l) {
      fine &= !inside[l] || static_cast<uint64_t>(index[l].i) < extent;
      address[l] +=
          static_cast<int64_t>(static_cast<uint64_t>(index[l].i) * static_cast<uint64_t>(stride));
    }
  }
  if (!fine) {
    fault = in.tensor;
    return false;
  }
  const uint8_t *bytes = in.array->bytes;
  const DType storage = in.array->storage;
  if (storage == DType::F32)
    for (int l = 0; l < count; ++l)
      d[l].f = inside[l] ? static_cast<double>(loadAs<float>(bytes, address[l])) : otherwise[l].f;
  else if (sizeInBytes(storage) == 8) // f64, i64 and u64 are their own lanes
    for (int l = 0; l < count; ++l)
      d[l].i = inside[l] ? loadAs<int64_t>(bytes, address[l]) : otherwise[l].i;
  else
    for (int l = 0; l < count; ++l) {
      if (!inside[l]) {
        d[l] = otherwise[l];
        continue;
      }
      ScalarValue v = load(*in.array, address[l]);
      if (isFloat(storage))
        d[l].f = v.f;
      else
        d[l].i = v.i;
    }
  return true;
}

bool Machine::execute(const std::vector<Instruction> &list, int count) {
  for (const Instruction &in : list) {
    Lane *d = lanes(in.result);
    if (in.op == ScalarOp::Read || in.op == ScalarOp::ReadIf) {
      if (!read(in, count))
        return false;
      continue;
    }
    const Lane *a = lanes(in.a), *b = in.b >= 0 ? lanes(in.b) : nullptr,
               *c = in.c >= 0 ? lanes(in.c) : nullptr;
    if (in.op == ScalarOp::Select) {
      for (int l = 0; l < count; ++l)
        d[l] = a[l].i ? b[l] : c[l];
      continue;
    }
    bool floats = isFloat(in.type);
    if (floats && isFloat(in.operandType) && in.op != ScalarOp::Cast &&
        in.op != ScalarOp::Bitcast && fastFloat(in.op, d, a, b, c, in.type, count)) {
      roundLanes(in.type, d, count);
      continue;
    }
    if (!floats && (in.type == DType::I64 || in.type == DType::Bool) &&
        fastInt(in.op, in.operandType, d, a, b, count))
      continue;
    for (int l = 0; l < count; ++l) {
      ScalarValue v[3];
      const Lane *operands[] = {a, b, c};
      for (int k = 0; k < 3 && operands[k]; ++k)
        v[k] = isFloat(in.operandType) ? ScalarValue{0, operands[k][l].f}
                                       : ScalarValue{operands[k][l].i, 0};
      auto r = evaluateScalar(in.op, in.type, in.operandType, v);
      assert(r && "an operation without a meaning");
      if (floats)
        d[l].f = r->f;
      else
        d[l].i = r->i;
    }
  }
  return true;
}

bool Machine::runSpatial(int count) { return execute(spatial, count); }
bool Machine::run(int count) { return execute(rest, count); }

} // namespace fusec::machine
