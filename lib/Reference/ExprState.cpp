#include "Reference/ExprEquations.h"
#include "Support/Diag.h"
#include "Support/DimProgram.h"

#include <algorithm>

namespace fusec::machine {

State::State(const ExprProgram &program, bool floatsInDouble)
    : program(program), floatsInDouble(floatsInDouble), arrays(program.tensors.size()),
      symbols(program.symbols.size(), 0), symbolKnown(program.symbols.size()) {
  for (size_t i = 0; i < program.tensors.size(); ++i)
    if (const ConstantRef &c = program.tensors[i].constant) {
      arrays[i].storage = c->type;
      arrays[i].dims = c->dims;
      arrays[i].bytes = c->bytes;
    }
}

Diagnostic State::error(const std::string &where, const std::string &text) const {
  return {Diag::BadIr, "expr " + program.name + (where.empty() ? "" : ": " + where), text};
}

Result<int64_t> State::evaluate(const DimExpr &d, const std::string &where) const {
  std::vector<SymbolId> used;
  d.collectSymbols(used);
  for (SymbolId s : used)
    if (!symbolKnown[static_cast<size_t>(s)])
      return error(where, "the symbol " + program.symbols[static_cast<size_t>(s)].name +
                              " has no value yet");
  auto v = d.evaluate(symbols);
  if (!v)
    return error(where, "the size " + d.str(program.symbols) + " cannot be computed");
  return *v;
}

Result<std::vector<int64_t>> State::dims(const Shape &shape, const std::string &where) const {
  std::vector<int64_t> out;
  for (const DimExpr &d : shape) {
    FUSEC_TRY(int64_t n, evaluate(d, where));
    out.push_back(n);
  }
  if (checkedProduct(out) < 0)
    return error(where, "the shape " + str(shape, program.symbols) + " is too large or negative");
  return out;
}

Status State::bind(TensorId id) {
  const Tensor &t = program.tensors[static_cast<size_t>(id)];
  const std::vector<int64_t> &actual = arrays[static_cast<size_t>(id)].dims;
  for (size_t d = 0; d < actual.size() && d < t.shape.size(); ++d) {
    if (t.shape[d].op() == DimExpr::Op::Symbol) {
      auto s = static_cast<size_t>(t.shape[d].symbolId());
      if (!symbolKnown[s]) {
        symbolKnown[s] = true;
        symbols[s] = actual[d];
      }
    }
  }
  FUSEC_TRY(std::vector<int64_t> expected, dims(t.shape, "%" + t.name));
  if (expected != actual)
    return error("%" + t.name, "the value has other dims than " + str(t.shape, program.symbols));
  return success();
}

void State::define() {
  std::vector<int64_t> values;
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (const auto &definition = program.symbols[s].definition; definition && !symbolKnown[s])
      if (const std::optional<int64_t> value = definition->evaluate(values)) {
        symbols[s] = *value;
        symbolKnown[s] = true;
      }
    if (!symbolKnown[s])
      return;
    values.push_back(symbols[s]);
  }
}

Status State::allocate(TensorId id, const std::string &where) {
  const Tensor &t = program.tensors[static_cast<size_t>(id)];
  FUSEC_TRY(std::vector<int64_t> sizes, dims(t.shape, where));
  arrays[static_cast<size_t>(id)].allocate(storage(t.type), std::move(sizes));
  return success();
}

Array State::copy(TensorId id) const {
  const Array &from = arrays[static_cast<size_t>(id)];
  Array to;
  to.allocate(storage(program.tensors[static_cast<size_t>(id)].type), from.dims);
  if (to.storage == from.storage)
    std::copy(from.bytes, from.bytes + to.owned.size(), to.owned.begin());
  else // a constant, kept as it is in its file
    for (int64_t i = 0; i < to.numElements(); ++i)
      store(to, i, load(from, i));
  return to;
}

void State::take(TensorId id, Array value) {
  Array &to = arrays[static_cast<size_t>(id)];
  to = std::move(value);
  to.bytes = to.owned.data();
}

Odometer::Odometer(std::vector<int64_t> extents, std::vector<Lane *> registers)
    : extents(std::move(extents)), at(this->extents.size()), registers(std::move(registers)) {
  for (int64_t n : this->extents)
    points *= n;
}

void Odometer::advance() {
  for (size_t k = extents.size(); k-- > 0;) {
    if (++at[k] < extents[k])
      return;
    at[k] = 0;
  }
}

void Odometer::next(int count) {
  for (int l = 0; l < count; ++l) {
    for (size_t k = 0; k < registers.size(); ++k)
      if (registers[k])
        registers[k][l].i = at[k];
    advance();
  }
}

void Odometer::nextToAll(int count) {
  for (size_t k = 0; k < registers.size(); ++k)
    if (registers[k])
      std::fill(registers[k], registers[k] + count, Lane{.i = at[k]});
  advance();
}

void Odometer::restart() { std::fill(at.begin(), at.end(), 0); }

} // namespace fusec::machine
