// Operators that only move data: maps with index arithmetic.
#include "Expr/lower/Lowering.h"
#include "Support/Diag.h"

#include <algorithm>
#include <span>

namespace fusec::lower {
namespace {

Status reshaped(NodeLowering &n) {
  n.reshape(n.out(), n.in(0));
  return success();
}

Status transpose(NodeLowering &n) {
  const std::vector<int64_t> &perm = n.node.intsAttr("perm");
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at(perm.size());
    for (size_t d = 0; d < perm.size(); ++d)
      at[static_cast<size_t>(perm[d])] = b.axis(d);
    return b.read(n.in(0), at);
  });
  return success();
}

Status expand(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) { return b.broadcast(n.in(0)); });
  return success();
}

Status tile(NodeLowering &n) {
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at;
    for (size_t d = 0; d < b.axes.size(); ++d)
      at.push_back(n.shape(0)[d] == n.outShape()[d] ? b.axis(d)
                                                    : floorMod(b.axis(d), n.shape(0)[d]));
    return b.read(n.in(0), at);
  });
  return success();
}

/// Each operand is read where the index along the axis lies in its part.
TensorId joined(NodeLowering &n, TensorId out, std::span<const TensorId> operands, size_t axis) {
  return n.map(out, [&](EquationBuilder &b) {
    Val r = b.constant(n.outType(), 0);
    DimExpr begin = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const DimExpr &extent = n.shapeOf(operands[i])[axis];
      std::vector<Val> at = b.axes;
      at[axis] = b.axis(axis) - begin;
      Val low = i == 0 ? Val{} : le(b.index(begin), b.axis(axis));
      Val high = i + 1 == operands.size() ? Val{} : lt(b.axis(axis), begin + extent);
      r = b.readIf(both(low, high), operands[i], at, r);
      begin = begin + extent;
    }
    return r;
  });
}

/// How many of `count` operands are put together at once, so that all are in as few copies as can be.
size_t operandsAtOnce(size_t count) {
  size_t levels = 1;
  for (size_t reached = kMostOperands; reached < count; reached *= kMostOperands)
    ++levels;
  for (size_t width = 1;; ++width) {
    size_t reached = 1;
    for (size_t level = 0; level < levels; ++level)
      reached *= width;
    if (reached >= count)
      return width;
  }
}

/// A choice between all operands would cost each element as many tests: many are put together in a tree.
Status concatenate(NodeLowering &n) {
  const auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  std::vector<TensorId> operands;
  for (size_t i = 0; i < n.node.inputs.size(); ++i)
    operands.push_back(n.in(i));
  const size_t width = std::max<size_t>(operandsAtOnce(operands.size()), 2);
  for (size_t level = 0; operands.size() > width; ++level) {
    std::vector<TensorId> wider;
    for (size_t begin = 0; begin < operands.size(); begin += width) {
      const auto some =
          std::span(operands).subspan(begin).first(std::min(width, operands.size() - begin));
      if (some.size() == 1) {
        wider.push_back(some[0]);
        continue;
      }
      Shape shape = n.outShape();
      shape[axis] = 0;
      for (TensorId t : some)
        shape[axis] = shape[axis] + n.shapeOf(t)[axis];
      const std::string name = "parts" + std::to_string(level) + "_" + std::to_string(wider.size());
      wider.push_back(joined(n, n.temp(name, n.outType(), std::move(shape)), some, axis));
    }
    operands = std::move(wider);
  }
  joined(n, n.out(), operands, axis);
  return success();
}

Status split(NodeLowering &n) {
  auto axis = static_cast<size_t>(n.node.intAttr("axis"));
  DimExpr begin = 0;
  for (size_t i = 0; i < n.node.outputs.size(); ++i) {
    if (!n.wants(i))
      return n.fail("every part of a split must have a name", Diag::UnsupportedShape);
    n.map(n.out(i), [&](EquationBuilder &b) {
      std::vector<Val> at = b.axes;
      at[axis] = b.axis(axis) + begin;
      return b.read(n.in(0), at);
    });
    begin = begin + n.outShape(i)[axis];
  }
  return success();
}

/// First index that a slice reads: `start` counted from the end when negative, clamped where the ranges leave that
/// open.
DimExpr sliceStart(const DimExpr &extent, int64_t start, int64_t step,
                   const std::vector<Symbol> &symbols) {
  DimExpr s = start >= 0           ? DimExpr(start)
              : start == INT64_MIN ? DimExpr(0)
                                   : extent + DimExpr(start);
  DimExpr last = step > 0 ? extent : extent - 1;
  if (start == INT64_MAX)
    return last;
  const bool isInside = (start >= 0 ? last - s : s).range(symbols).min >= 0;
  return isInside ? s : start >= 0 ? min(s, last) : max(s, DimExpr(0));
}

Status slice(NodeLowering &n) {
  const auto &starts = n.node.intsAttr("starts"), &axes = n.node.intsAttr("axes"),
             &steps = n.node.intsAttr("steps");
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    for (size_t i = 0; i < axes.size(); ++i) {
      auto d = static_cast<size_t>(axes[i]);
      if (!n.outShape()[d].isConst(0))
        at[d] = at[d] * double(steps[i]) +
                sliceStart(n.shape(0)[d], starts[i], steps[i], n.l.graph.symbols);
    }
    return b.read(n.in(0), at);
  });
  return success();
}

/// Starts and steps come from tensors: the same clamping, done at run time.
Status sliceDynamic(NodeLowering &n) {
  size_t count = 0;
  if (n.shape(1).size() != 1 || !n.shape(1)[0].isConst())
    return n.fail("the number of sliced axes must be known", Diag::UnsupportedShape);
  count = static_cast<size_t>(n.shape(1)[0].constValue());
  if (n.has(3) && !n.inValue(3).constant)
    return n.fail("the axes must be constants");
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    for (size_t i = 0; i < count; ++i) {
      Val which = b.index(static_cast<int64_t>(i));
      int64_t axis = n.has(3) ? n.inValue(3).constant->intAt(static_cast<int64_t>(i))
                              : static_cast<int64_t>(i);
      auto d = static_cast<size_t>(axis < 0 ? axis + n.rank(0) : axis);
      const DimExpr &extent = n.shape(0)[d];
      auto element = [&](size_t input) {
        // Values that follow from shapes are expressions, so that the map stays affine.
        const Value &v = n.inValue(input);
        return v.known.empty() ? cast(DType::I64, b.read(n.in(input), {which}))
                               : b.index(v.known[i]);
      };
      Val start = element(1), step = n.has(4) ? element(4) : b.index(1);
      start = select(lt(start, 0), start + extent, start);
      Val backward = lt(step, 0);
      Val last = select(backward, b.index(extent - 1), b.index(extent));
      start = min(max(start, 0), last);
      at[d] = at[d] * step + start;
    }
    return b.read(n.in(0), at);
  });
  return success();
}

/// Maps an index outside [0, extent) back in, once: edge clamps, wrap is periodic; reflect does not repeat the border,
/// and its pads are smaller than the extent (`repeatable` in Graph/rules), so that no index is reflected twice.
Val padIndex(const std::string &mode, Val i, const DimExpr &extent) {
  if (mode == "edge")
    return min(max(i, 0), i.likeDim(extent - 1));
  if (mode == "wrap")
    return floorMod(i, extent);
  const Val distance = max(i, i * -1.0);
  return min(distance, i.likeDim((extent - 1) * DimExpr(2)) - distance);
}

Status pad(NodeLowering &n) {
  const std::string &mode = n.node.stringAttr("mode");
  const std::vector<int64_t> &pads = n.node.intsAttr("pads");
  size_t rank = n.shape(0).size();
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    Val inside;
    for (size_t d = 0; d < rank; ++d) {
      int64_t begin = pads[d], end = pads[rank + d];
      if (begin == 0 && end == 0)
        continue;
      at[d] = b.axis(d) - double(begin);
      if (mode == "constant") {
        inside = both(inside, begin > 0 ? ge(at[d], 0) : Val{});
        inside = both(inside, end > 0 ? lt(at[d], n.shape(0)[d]) : Val{});
      } else if (begin > 0 || end > 0) {
        // What a negative pad cuts is gone before the rest is repeated.
        int64_t before = std::max<int64_t>(-begin, 0), behind = std::max<int64_t>(-end, 0);
        DimExpr rest = n.shape(0)[d] - DimExpr(before + behind);
        at[d] = padIndex(mode, at[d] - double(before), rest) + double(before);
      }
    }
    Val fill = n.has(2) ? b.scalar(n.in(2)) : b.constant(n.outType(), 0);
    return b.readIf(inside, n.in(0), at, fill);
  });
  return success();
}

Status depthToSpace(NodeLowering &n) {
  int64_t block = n.node.intAttr("blocksize");
  bool crd = n.node.stringAttr("mode") == "CRD";
  DimExpr channels = n.outShape()[1];
  n.map(n.out(), [&](EquationBuilder &b) {
    Val c = b.axis(1), h = b.axis(2), w = b.axis(3);
    Val sub = floorMod(h, block) * double(block) + floorMod(w, block);
    Val from = crd ? c * double(block * block) + sub : sub * channels + c;
    return b.read(n.in(0), {b.axis(0), from, floorDiv(h, block), floorDiv(w, block)});
  });
  return success();
}

Status spaceToDepth(NodeLowering &n) {
  int64_t block = n.node.intAttr("blocksize");
  const DimExpr channels = n.shape(0)[1], area(block * block);
  bool crd = n.node.stringAttr("mode") == "CRD";
  n.map(n.out(), [&](EquationBuilder &b) {
    Val sub = crd ? floorMod(b.axis(1), area) : floorDiv(b.axis(1), channels);
    Val c = crd ? floorDiv(b.axis(1), area) : floorMod(b.axis(1), channels);
    Val h = b.axis(2) * double(block) + floorDiv(sub, block),
        w = b.axis(3) * double(block) + floorMod(sub, block);
    return b.read(n.in(0), {b.axis(0), c, h, w});
  });
  return success();
}

/// The first sequence_lens[batch] steps backwards, the rest as it is.
Status reverseSequence(NodeLowering &n) {
  auto time = static_cast<size_t>(n.node.intAttr("time_axis"));
  auto batch = static_cast<size_t>(n.node.intAttr("batch_axis"));
  n.map(n.out(), [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    Val t = b.axis(time), length = cast(DType::I64, b.read(n.in(1), {b.axis(batch)}));
    length = min(length, length.likeDim(n.shape(0)[time])); // data, which may say too much
    at[time] = select(lt(t, length), length - t - 1, t);
    return b.read(n.in(0), at);
  });
  return success();
}

Status trilu(NodeLowering &n) {
  bool upper = n.node.intAttr("upper");
  n.map(n.out(), [&](EquationBuilder &b) {
    size_t rank = b.axes.size();
    Val row = b.axis(rank - 2), column = b.axis(rank - 1);
    Val diagonal = row + (n.has(1) ? b.scalar(n.in(1)) : b.index(0));
    Val keep = upper ? le(diagonal, column) : le(column, diagonal);
    return select(keep, b.read(n.in(0), b.axes), b.constant(n.outType(), 0));
  });
  return success();
}

} // namespace

void addMovement(HandlerTable &table) {
  using enum OpKind;
  for (OpKind op : {Reshape, Flatten, Squeeze, Unsqueeze})
    table[op] = reshaped;
  table[Transpose] = transpose;
  table[Expand] = expand;
  table[Tile] = tile;
  table[Concat] = concatenate;
  table[Split] = split;
  table[Slice] = slice;
  table[SliceDynamic] = sliceDynamic;
  table[Pad] = pad;
  table[DepthToSpace] = depthToSpace;
  table[SpaceToDepth] = spaceToDepth;
  table[ReverseSequence] = reverseSequence;
  table[Trilu] = trilu;
}

} // namespace fusec::lower
