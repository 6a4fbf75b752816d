// Loops that a micro-kernel makes: what its emitter asks for (Kernels/Kernels.h), in the terms of the kernel.
#include "Codegen/Emitter.h"
#include "Codegen/Kernels/Kernels.h"

#include "Gir/Product.h"

#include <algorithm>

namespace fusec {

using llvm::Value;

namespace {

int64_t elementsOf(const std::vector<Product::TileLoop> &loops) {
  int64_t product = 1;
  for (const Product::TileLoop &loop : loops)
    product *= loop.trip;
  return product;
}

} // namespace

/// Operands of one product, each evaluated where its loops' variables have the numbers that are asked for.
class Emitter::ProductOperands final : public ProductCode {
public:
  ProductOperands(Emitter &emitter, const Product &product)
      : emitter(emitter), product(product), type(emitter.kernel.buffers[product.sum->buffer].type) {
    rows = elementsOf(product.rows);
    columns = elementsOf(product.columns);
    terms = elementsOf(product.terms);
  }

  Value *row(int64_t m, int64_t k) override {
    set(product.rows, m);
    return operand(product.row, k);
  }
  Value *column(int64_t k, int64_t n) override {
    set(product.columns, n);
    return operand(product.column, k);
  }
  void add(int64_t m, int64_t n, Value *row, Value *column) override {
    set(product.rows, m);
    set(product.columns, n);
    emitter.forget();
    const std::vector<Val> indices = emitter.evalAll(product.sum->indices);
    Value *sum = emitter.asVector(emitter.load(product.sum->buffer, indices));
    // In the order of the product's text.
    if (emitter.kernel.body[product.sum->value].args[0] == product.column)
      std::swap(row, column);
    emitter.store(product.sum->buffer, indices,
                  {emitter.fma(type, row, column, sum), 0, emitter.width > 1});
  }

private:
  void set(const std::vector<Product::TileLoop> &loops, int64_t number) {
    for (size_t i = loops.size(); i-- > 0; number /= loops[i].trip)
      emitter.vars[loops[i].var] = {emitter.b.getInt64(number % loops[i].trip)};
  }
  Value *operand(NodeId read, int64_t k) {
    set(product.terms, k);
    emitter.forget();
    return emitter.asVector(emitter.eval(read));
  }

  Emitter &emitter;
  const Product &product;
  const DType type;
};

void Emitter::emitProduct(const Stmt &loop) {
  const auto row = std::ranges::find(kernels, loop.kernel, &MicroKernel::name);
  const std::optional<Product> product = productOf(kernel, loop);
  const KernelEmitter emitter = row == kernels.end() ? nullptr : kernelEmitter(row->emitter);
  if (!emitter)
    return problem("the micro-kernel '" + loop.kernel + "', which this target has not");
  if (!product)
    return problem("the micro-kernel '" + loop.kernel + "' over loops that make no product");
  inLane = true;
  vars[product->lanes] = threads ? Val{threadLane} : Val{b.getInt64(0), width > 1 ? 1 : 0};
  ProductOperands operands(*this, *product);
  emitter(operands);
  inLane = false;
}

} // namespace fusec
