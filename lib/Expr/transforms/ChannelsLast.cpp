// Stores images [N, C, H, W, ...] between convolutions as [N, H, W, C]: then a convolution's inner product runs over
// contiguous channels and its outputs are contiguous channels too. Only the order of a temp's dimensions changes,
// together with the spatial axes of the equation that writes it and the indices of all reads:
//
//   tensor %c: f32[1,64,56,56] temp                          ->  tensor %c: f32[1,56,56,64] temp
//   reduction conv [n:1, o:64, y:56, x:56; c:3, r:3, s:3]        reduction conv [n:1, y:56, x:56, o:64; c:3, r:3, s:3]
//     %c = mul(%in[n, c, y + r, x + s], %w[o, c, r, s])            %c = mul(%in[n, c, y + r, x + s], %w[o, c, r, s])
//   map relu [n:1, c:64, y:56, x:56]                             map relu [n:1, c:64, y:56, x:56]
//     %y = max(%c[n, c, y, x], 0.0)                                %y = max(%c[n, y, x, c], 0.0)
//
// A convolution in groups has two such axes, [n, group, channel, y, x], and both go behind the image: the channels of a
// group share what they read, and [group, channel] lies as the channels of the next image do.
//
// Reduction axes keep their order, so that sums keep their bits. The model's inputs and outputs and tensors that a
// scan, a branch, a scatter or an opaque equation takes as a whole keep their layout.
//
// Temps are grouped by equations that read and write images at the same place (activations, pools, residual sums);
// a group with a convolution in it changes, or with a pool whose image lies so already. Must run after compose: until
// then, transposes of the model hide which axis is the channel.
#include "Expr/Passes.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace fusec {
namespace {

constexpr int kMinRank = 3; // batch, channel and an image axis

class ChannelsLast {
public:
  explicit ChannelsLast(ExprProgram &program)
      : program(program), whole(wholeUses(program)), parent(program.tensors.size()),
        eligible(program.tensors.size()), seeded(program.tensors.size()),
        channels(program.tensors.size(), 1), moves(program.tensors.size()) {
    std::iota(parent.begin(), parent.end(), 0);
  }

  void run() {
    forEachEquation(program.items, [&](Equation &e, const DimExpr *) { findEligible(e); });
    forEachEquation(program.items, [&](Equation &e, const DimExpr *) { connect(e); });
    std::vector<bool> groupChanges(parent.size());
    for (size_t i = 0; i < parent.size(); ++i)
      if (seeded[i])
        groupChanges[find(i)] = true;
    for (size_t i = 0; i < parent.size(); ++i)
      if (eligible[i] && groupChanges[find(i)])
        moves[i] = channels[i];
    for (size_t i = 0; i < parent.size(); ++i) {
      Shape &shape = program.tensors[i].shape;
      if (moves[i] > 0)
        std::rotate(shape.begin() + 1, shape.begin() + 1 + moves[i], shape.end());
    }
    forEachEquation(program.items, [&](Equation &e, const DimExpr *steps) { rewrite(e, steps); });
  }

private:
  size_t find(size_t i) {
    while (parent[i] != i)
      i = parent[i] = parent[parent[i]];
    return i;
  }

  void findEligible(const Equation &e) {
    if ((e.kind != EquationKind::Map && e.kind != EquationKind::Reduction) ||
        e.outputs.size() != 1 || e.numSpatial < kMinRank || e.axes.size() > 63)
      return;
    TensorId out = e.outputs[0];
    eligible[out] = program.tensors[out].kind == TensorKind::Temp && !whole[out];
  }

  /// Indices (b, c, y, x, ...) at the image position of the equation's own axes: the batch index depends on axis 0
  /// alone, each image index on its axis and no other spatial one, the channel index on no other axis than 1. With two
  /// `channelAxes` the equation has one axis more, 2, that no index depends on.
  bool isImageRead(const Equation &e, const std::vector<uint64_t> &axes, const Scalar &read,
                   int channelAxes = 1) const {
    size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
    const int rank = static_cast<int>(read.args.size() - first);
    if (rank < kMinRank || rank + channelAxes - 1 != e.numSpatial)
      return false;
    uint64_t spatial = (uint64_t(1) << e.numSpatial) - 1;
    for (int d = 0; d < rank; ++d) {
      uint64_t depends = axes[read.args[first + d]] & spatial;
      const int axis = d < 2 ? d : d + channelAxes - 1;
      uint64_t own = uint64_t(1) << axis;
      bool fixed = depends == 0 && e.axes[axis].extent.isConst(1);
      if (d == 1 ? (depends & ~own) != 0 : depends != own && !fixed)
        return false;
    }
    return true;
  }

  /// The axes of the image that have more than one point, where `channelAxes` are the channel's.
  static uint64_t placesOf(const Equation &e, int channelAxes) {
    uint64_t places = 0;
    for (int axis = channelAxes + 1; axis < e.numSpatial; ++axis)
      places |= uint64_t{!e.axes[axis].extent.isConst(1)} << axis;
    return places;
  }

  /// The image lies with its channels innermost, in whatever dimensions: the last index alone does not move along the
  /// image. So do the model's transposes and reshapes make it, which compose has written into the read.
  bool liesChannelsLast(const Equation &e, const std::vector<uint64_t> &axes, const Scalar &read,
                        int channelAxes) const {
    const uint64_t places = placesOf(e, channelAxes);
    uint64_t others = 0;
    for (size_t i = read.op == ScalarOp::ReadIf ? 2 : 0; i + 1 < read.args.size(); ++i)
      others |= axes[read.args[i]];
    return places != 0 && (std::popcount(places) > 1 || slides(e, axes, read, channelAxes)) &&
           read.args.size() > 1 && (others & places) == places &&
           (axes[read.args.back()] & places) == 0 &&
           !program.tensors[read.index].shape.back().isConst(1);
  }

  /// Neighbours along the image share what they read, as the windows of a pool.
  static bool slides(const Equation &e, const std::vector<uint64_t> &axes, const Scalar &read,
                     int channelAxes) {
    uint64_t reduced = 0;
    for (size_t axis = e.numSpatial; axis < e.axes.size(); ++axis)
      reduced |= uint64_t{!e.axes[axis].extent.isConst(1)} << axis;
    const size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
    const uint64_t places = placesOf(e, channelAxes);
    return std::any_of(
        read.args.begin() + static_cast<std::ptrdiff_t>(first), read.args.end(),
        [&](NodeId index) { return (axes[index] & reduced) != 0 && (axes[index] & places) != 0; });
  }

  /// With one axis of the image it has to be a window's: else it is the operand of a product of matrices.
  bool isImageOfConvolution(const Equation &e, const std::vector<uint64_t> &axes,
                            const Scalar &read, int channelAxes) const {
    return isImageRead(e, axes, read, channelAxes) &&
           (e.numSpatial > channelAxes + 2 || slides(e, axes, read, channelAxes));
  }

  bool isPool(const Equation &e, const std::vector<uint64_t> &axes) const {
    if (e.kind != EquationKind::Reduction)
      return false;
    const std::vector<NodeId> nodes = e.body.reachable(bodyRoots(e));
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      const Scalar &s = e.body[id];
      return isRead(s) && liesChannelsLast(e, axes, s, 1) && slides(e, axes, s, 1);
    });
  }

  /// A sum of products of an image and weights that depend on neither batch nor place; 1x1 convolutions too.
  bool isConvolution(const Equation &e, const std::vector<uint64_t> &axes, int channelAxes) const {
    if (e.kind != EquationKind::Reduction || e.monoid != Monoid::Sum)
      return false;
    NodeId root = e.results[0];
    while (e.body[root].op == ScalarOp::Cast)
      root = e.body[root].args[0];
    if (e.body[root].op != ScalarOp::Mul)
      return false;
    uint64_t places = (uint64_t(1) << e.numSpatial) - 1; // all spatial axes but the channel's
    for (int axis = 1; axis <= channelAxes; ++axis)
      places &= ~(uint64_t(1) << axis);
    for (int side = 0; side < 2; ++side) {
      NodeId image = e.body[root].args[side], weights = e.body[root].args[1 - side];
      if ((axes[weights] & places) != 0 || axes[weights] == 0)
        continue;
      for (NodeId id : e.body.reachable({image}))
        if (isRead(e.body[id]) && (isImageOfConvolution(e, axes, e.body[id], channelAxes) ||
                                   liesChannelsLast(e, axes, e.body[id], channelAxes)))
          return true;
    }
    return false;
  }

  void connect(const Equation &e) {
    if ((e.kind != EquationKind::Map && e.kind != EquationKind::Reduction) ||
        e.numSpatial < kMinRank || e.axes.size() > 63)
      return;
    std::vector<uint64_t> axes = axisDependences(e.body);
    TensorId out = e.outputs[0];
    const bool plain = isConvolution(e, axes, 1), grouped = !plain && isConvolution(e, axes, 2);
    if ((plain || grouped || isPool(e, axes)) && e.outputs.size() == 1)
      seeded[out] = true;
    if (grouped)
      channels[out] = 2;
    for (NodeId id : e.body.reachable(bodyRoots(e))) {
      const Scalar &s = e.body[id];
      if (!isRead(s) || !eligible[s.index] || !isImageRead(e, axes, s, channels[out]))
        continue;
      if (plain || grouped)
        seeded[s.index] = true;
      if (eligible[out] && channels[s.index] == channels[out] && !grouped)
        parent[find(s.index)] = find(out);
    }
  }

  /// Position of the old dimension d among the new ones, where dimensions 1 to `count` went behind the others.
  static int moved(int d, int rank, int count) {
    return d == 0 ? 0 : d <= count ? d + rank - 1 - count : d - count;
  }

  void rewrite(Equation &e, const DimExpr *steps) {
    const int writes = e.outputs.empty() ? 0 : moves[e.outputs[0]];
    bool reads = std::any_of(e.body.nodes.begin(), e.body.nodes.end(),
                             [&](const Scalar &s) { return isRead(s) && moves[s.index] > 0; });
    if (writes == 0 && !reads)
      return;
    if (writes > 0)
      std::rotate(e.axes.begin() + 1, e.axes.begin() + 1 + writes, e.axes.begin() + e.numSpatial);
    rebuild(e, program.symbols, steps, [&](Body &body, const Scalar &s, NodeId) {
      if (s.op == ScalarOp::Axis)
        return writes > 0 && s.index < e.numSpatial
                   ? body.axis(moved(s.index, e.numSpatial, writes))
                   : kNoNode;
      if (!isRead(s) || moves[s.index] == 0)
        return kNoNode;
      Scalar t = s;
      const auto first = t.args.begin() + (s.op == ScalarOp::ReadIf ? 2 : 0);
      std::rotate(first + 1, first + 1 + moves[s.index], t.args.end());
      return body.add(std::move(t));
    });
  }

  ExprProgram &program;
  std::vector<bool> whole;
  std::vector<size_t> parent; // union-find over tensors
  std::vector<bool> eligible, seeded;
  std::vector<int> channels; // dimensions from 1 on that go behind the others if the tensor changes
  std::vector<int> moves;    // as many, where it does; else 0
};

} // namespace

ExprProgram channelsLast(ExprProgram program) {
  ChannelsLast(program).run();
  return program;
}

} // namespace fusec
