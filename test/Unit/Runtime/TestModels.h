#pragma once
#include "Bundle/Model.h"
#include "Bundle/Signature.h"

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <iterator>

/// Small models over the kernels of Kernels.c.
namespace test {

using namespace fusec;
using namespace fusec::bundle;

inline std::vector<uint8_t> kernelImage(const std::string &target) {
  std::ifstream in(target.rfind("sim:", 0) == 0 ? TEST_SIM_KERNELS : TEST_KERNELS,
                   std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {});
}

inline Tensor tensor(const std::string &name, TensorKind kind, std::vector<DimCode> shape,
                     DType type = DType::F32) {
  Tensor t;
  t.name = name;
  t.kind = kind;
  t.type = type;
  t.shape = std::move(shape);
  return t;
}

inline Kernel kernel(const std::string &symbol, std::vector<DimCode> grids,
                     std::vector<Param> params, std::vector<SymbolId> dims = {}) {
  Kernel k;
  k.symbol = symbol;
  k.grids = std::move(grids);
  k.params = std::move(params);
  k.dims = std::move(dims);
  k.onnxNodes = {"node_" + symbol};
  return k;
}

inline Step launch(const std::string &name, int32_t kernel, std::vector<int32_t> arguments) {
  Step s;
  s.name = name;
  s.variants = {{kernel, {}, std::move(arguments)}};
  return s;
}

inline constexpr Param in{DType::F32, false}, out{DType::F32, true};

/// floordiv(n + 63, 64)
inline DimCode blocksOf(SymbolId n) {
  DimCode d = DimCode::symbol(n);
  d.code.push_back({DimCode::Op::Const, 63});
  d.code.push_back({DimCode::Op::Add, 0});
  d.code.push_back({DimCode::Op::Const, 64});
  d.code.push_back({DimCode::Op::FloorDiv, 0});
  return d;
}

/// The target of a program and the limits that go with it.
inline void setTarget(Program &p, const std::string &target) {
  const bool gpu = target.rfind("x86-64-", 0) != 0;
  p.target = target;
  p.maxBlockThreads = gpu ? 1024 : 0;
  p.maxSharedBytes = gpu ? 48 << 10 : 0;
}

inline Model emptyModel(const std::string &target = "x86-64-v1") {
  Model m;
  m.name = "test";
  m.producer = "test";
  m.symbols = {{"n", 0, 100, 1 << 20, 1}};
  Program p;
  setTarget(p, target);
  Image image;
  image.code = kernelImage(target);
  p.images.push_back(image);
  m.programs.push_back(p);
  return m;
}

inline void addValue(Model &m, bool input, int32_t t) {
  const Tensor &x = m.programs[0].tensors[t];
  (input ? m.inputs : m.outputs).push_back({x.name, x.type, x.shape});
  (input ? m.programs[0].inputs : m.programs[0].outputs).push_back(t);
}

/// y[n] = (x + w) + x with x: f32 [n], one temporary, w: x's companion input; s[1] = sum of y.
inline Model addModel(const std::string &target = "x86-64-v1") {
  Model m = emptyModel(target);
  Program &p = m.programs[0];
  const DimCode n = DimCode::symbol(0);
  p.tensors = {tensor("x", TensorKind::Input, {n}),
               tensor("w", TensorKind::Input, {n}),
               tensor("t", TensorKind::Temp, {n}),
               tensor("y", TensorKind::Output, {n}),
               tensor("partial", TensorKind::Temp, {blocksOf(0)}),
               tensor("s", TensorKind::Output, {1})};
  p.kernels = {kernel("add", {blocksOf(0)}, {in, in, out}, {0}),
               kernel("sum", {blocksOf(0), 1}, {in, out, out}, {0})};
  p.kernels[1].scratchBytes = 64 * 4;
  p.steps = {launch("first", 0, {0, 1, 2}), launch("second", 0, {2, 0, 3}),
             launch("total", 1, {3, 4, 5})};
  addValue(m, true, 0);
  addValue(m, true, 1);
  addValue(m, false, 3);
  addValue(m, false, 5);
  return m;
}

/// y[n] = x after steps[m] rounds, in each of which a value goes to its neighbours.
inline Model roundsModel() {
  Model m = emptyModel();
  m.symbols.push_back({"m", 0, 100, 1 << 20, 1});
  Program &p = m.programs[0];
  const DimCode n = DimCode::symbol(0), steps = DimCode::symbol(1);
  DimCode halves = n;
  halves.code.push_back({DimCode::Op::Const, 2});
  halves.code.push_back({DimCode::Op::Mul, 0});
  p.tensors = {tensor("x", TensorKind::Input, {n}), tensor("steps", TensorKind::Input, {steps}),
               tensor("state", TensorKind::Temp, {halves}), tensor("y", TensorKind::Output, {n})};
  p.kernels = {kernel("spread", {blocksOf(0), blocksOf(0), blocksOf(0)}, {in, out, out}, {0, 1})};
  p.kernels[0].rounds = steps;
  p.kernels[0].roundsFirst = 1;
  p.kernels[0].roundsLast = 2;
  p.steps = {launch("spread", 0, {0, 2, 3})};
  addValue(m, true, 0);
  addValue(m, true, 1);
  addValue(m, false, 3);
  return m;
}

/// y = x + w for x: f32 [4] with the constant w; no symbols.
inline Model constantModel(const float (&w)[4], const std::string &target = "x86-64-v1") {
  Model m = emptyModel(target);
  Program &p = m.programs[0];
  m.symbols = {{"n", 4, 4, 4, 1}};
  const DimCode n = 4;
  p.tensors = {tensor("x", TensorKind::Input, {n}), tensor("w", TensorKind::Constant, {n}),
               tensor("y", TensorKind::Output, {n})};
  p.tensors[1].weight = 0;
  m.weights.push_back({DType::F32, reinterpret_cast<const uint8_t *>(w), sizeof w});
  p.kernels = {kernel("add", {1}, {in, in, out}, {0})};
  p.steps = {launch("add", 0, {0, 1, 2})};
  addValue(m, true, 0);
  addValue(m, false, 2);
  return m;
}

/// A key pair that is always the same: the seed is 1 and zeros.
inline constexpr PublicKey kPublicKey = {
    0xce, 0xcc, 0x15, 0x07, 0xdc, 0x1d, 0xdd, 0x72, 0x95, 0x95, 0x1c, 0x29, 0x08, 0x88, 0xf0, 0x95,
    0xad, 0xb9, 0x04, 0x4d, 0x1b, 0x73, 0xd6, 0x96, 0xe6, 0xdf, 0x06, 0x5d, 0x68, 0x3b, 0xd4, 0xfc};
inline constexpr SecretKey kSecretKey = [] {
  SecretKey key{1};
  for (size_t i = 0; i < kPublicKey.size(); ++i)
    key[32 + i] = kPublicKey[i];
  return key;
}();

} // namespace test
