// Vertical composition (Souffle 6.2): a map is written into the equations that read it, until nothing more is
// worth it. A read of the map's output becomes the map's value at the read's indices. With
//
//   map b [i:4, j:8]  %b = %a[2*i, j]        ->   map d [i:8, j:4]  %d = %a[j*2, i]
//   map d [i:8, j:4]  %d = %b[j, i]
//
// the reader's indices (j, i) stand in for the producer's axes (i, j): D[i,j] = B[j,i] = A[2j,i]. (The paper's
// Fig. 4 composes the two access matrices the wrong way round and prints A[j,2i].)
//
// A conditional read guards what is written in its place: see Inline.h. There are two phases, because a map that
// only moves data should reach its readers before arithmetic is merged into it, and stay movement.
//
//   1. Movement (isMovement): transpose, reshape, slice, pad, split, broadcast, gather, iota; into every reader,
//      operands of contractions included. A choice between several tensors (concat) is not written into a reader
//      that comes by an element again (a contraction, the windows of a filter): it would test it once for every use
//      of an element instead of once an element. Nor into one that would choose from more than kMaxChoices.
//   2. Arithmetic, where the reader does not repeat it (mayRepeat) and where it does not cost traffic: see
//      `arithmeticFits`. Operands of contractions stay as they are: each element is used many times there.
//
// A reader stays as it is where its body or the number of its tensors would grow beyond what a kernel takes.
//
// Reductions, scans, scatters and opaque equations are never written into their readers. A tensor that must exist
// anyway (an output, a scan's input...) is read as it is, unless the map is a plain view.
#include "Expr/Arguments.h"
#include "Expr/Passes.h"
#include "Expr/transforms/Inline.h"
#include "Expr/transforms/Profile.h"
#include "Expr/transforms/Walk.h"
#include "Support/UniqueNames.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

namespace fusec {
namespace {

constexpr size_t kMaxChoices = 6; // tensors that one element is chosen from
constexpr int kCheapOps = 2;
constexpr int kMaxRounds = 16;

/// Definition of a tensor by a map.
struct Definition {
  Equation *map = nullptr;
  size_t output = 0;
  int scope = 0;
  size_t place = 0; // of the map in the order of readers
};

struct Reader {
  Equation *equation;
  const DimExpr *steps;
  int scope;                   // equations of one list or of one scan's body share it
  std::vector<size_t> written; // places of the maps that were written into it
};

class Composer {
public:
  explicit Composer(ExprProgram &program)
      : program(program), whole(wholeUses(program)), ofConstants(madeOfConstants(program)),
        definitions(program.tensors.size()) {
    collect(program.items);
    countReaders();
  }

  void inlineMovement() {
    for (Reader &r : order)
      simplifyAndInline(r,
                        [&](const Reader &reader, TensorId t) { return movementFits(reader, t); });
    collectOrigins();
  }
  /// True if anything was inlined.
  bool inlineArithmetic() {
    bool changed = false;
    for (Reader &r : order)
      changed |= simplifyAndInline(
          r, [&](const Reader &reader, TensorId t) { return arithmeticFits(reader, t); });
    collectOrigins();
    return changed;
  }

private:
  void collect(std::vector<Item> &items) {
    int scope = ++scopes;
    for (Item &item : items) {
      if (auto *e = std::get_if<Equation>(&item.value)) {
        add(*e, nullptr, scope);
        int inner = e->scanBody.empty() ? 0 : ++scopes;
        for (Equation &b : e->scanBody)
          add(b, &e->steps, inner);
      } else {
        auto &c = std::get<Control>(item.value);
        collect(c.thenItems);
        collect(c.elseItems);
      }
    }
  }

  void add(Equation &e, const DimExpr *steps, int scope) {
    if (e.kind == EquationKind::Map)
      for (size_t i = 0; i < e.outputs.size(); ++i)
        definitions[e.outputs[i]] = {&e, i, scope, order.size()};
    if (!bodyRoots(e).empty())
      order.push_back({&e, steps, scope, {}});
  }

  /// Rebuilds the reader with every read for which `fits` replaced. Producers come first in `order` and are done.
  bool simplifyAndInline(Reader &r, const std::function<bool(const Reader &, TensorId)> &fits) {
    std::map<TensorId, bool> decided; // once a tensor, on the equation as it was
    for (NodeId id : r.equation->body.reachable(bodyRoots(*r.equation)))
      if (const Scalar &s = r.equation->body[id]; isRead(s))
        if (decided.find(s.index) == decided.end())
          decided[s.index] = fits(r, s.index);
    if (std::none_of(decided.begin(), decided.end(), [](const auto &d) { return d.second; })) {
      rebuild(*r.equation, program.symbols, r.steps, nullptr);
      return false;
    }
    if (!continueMap(r, decided) && !writeInto(r, decided))
      return false;
    for (const auto &[tensor, inlined] : decided)
      if (inlined) {
        const Definition &d = definitions[tensor];
        r.written.push_back(d.place);
        ++taken[tensor];
        // Bodies that nobody reads any more would add up to the square of a chain's length.
        if (isDone(*d.map))
          d.map->body = Body();
      }
    return true;
  }

  /// Nobody reads any output of the map.
  bool isDone(const Equation &map) const {
    return std::all_of(map.outputs.begin(), map.outputs.end(),
                       [&](TensorId t) { return !whole[t] && taken[t] == readers[t].size(); });
  }

  /// False where that would make the reader too large: it keeps its reads then.
  bool writeInto(Reader &r, std::map<TensorId, bool> &decided) {
    Equation before = *r.equation;
    rebuild(*r.equation, program.symbols, r.steps, [&](Body &body, const Scalar &s, NodeId) {
      return isRead(s) && decided[s.index] ? inlineMap(body, *definitions[s.index].map, s)
                                           : kNoNode;
    });
    if (r.equation->body.nodes.size() <= std::max(kMaxBodyNodes, before.body.nodes.size()) &&
        tensorsRead(*r.equation) <= std::max(kMostOperands, decided.size()))
      return true;
    *r.equation = std::move(before);
    rebuild(*r.equation, program.symbols, r.steps, nullptr);
    return false;
  }

  /// Inlines as writeInto does, for a map that reads another one's output at its own place and is its only reader: its
  /// few nodes go behind the other's many, which stay where they are. A chain of maps costs its length, where copying
  /// each one into the next would cost a body of kMaxBodyNodes a map.
  bool continueMap(Reader &r, const std::map<TensorId, bool> &decided) {
    Equation &e = *r.equation;
    const auto inlined =
        std::find_if(decided.begin(), decided.end(), [](auto &d) { return d.second; });
    const TensorId tensor = inlined->first;
    Equation &map = *definitions[tensor].map;
    if (e.kind != EquationKind::Map || map.outputs.size() != 1 || whole[tensor] ||
        readers[tensor].size() != 1 || r.scope != definitions[tensor].scope ||
        std::count_if(decided.begin(), decided.end(), [](auto &d) { return d.second; }) != 1 ||
        !std::equal(e.axes.begin(), e.axes.end(), map.axes.begin(), map.axes.end(),
                    [](const Axis &a, const Axis &b) { return a.extent == b.extent; }))
      return false;
    // What may become too large, or read too much, is left to writeInto.
    const size_t bound = map.body.nodes.size() + 2 * e.body.nodes.size();
    const auto reads = std::count_if(map.body.nodes.begin(), map.body.nodes.end(), isRead);
    if (bound > kMaxBodyNodes || decided.size() + static_cast<size_t>(reads) > kMostOperands)
      return false;
    NodeId read = kNoNode;
    for (NodeId id : e.body.reachable(e.results)) {
      if (!isRead(e.body[id]) || e.body[id].index != tensor)
        continue;
      if (read != kNoNode || !isAtOwnPlace(e.body, e.body[id]))
        return false;
      read = id;
    }
    const Body old = std::move(e.body);
    const std::vector<bool> needed = old.neededBeside({read}, e.results);
    e.body = std::move(map.body);
    std::vector<NodeId> copy(old.nodes.size(), kNoNode);
    for (NodeId id = 0; id < static_cast<NodeId>(old.nodes.size()); ++id) {
      if (!needed[id])
        continue;
      Scalar s = old[id];
      if (id == read) {
        copy[id] = map.results[0];
        continue;
      }
      for (NodeId &a : s.args)
        a = copy[a];
      copy[id] = e.body.add(std::move(s));
    }
    for (NodeId &root : e.results)
      root = copy[root];
    return true;
  }

  /// Reads an element with the indices of the point: %x[i, j] in a domain [i, j].
  static bool isAtOwnPlace(const Body &body, const Scalar &read) {
    if (read.op != ScalarOp::Read)
      return false;
    for (size_t d = 0; d < read.args.size(); ++d)
      if (const Scalar &s = body[read.args[d]];
          s.op != ScalarOp::Axis || static_cast<size_t>(s.index) != d)
        return false;
    return true;
  }

  static size_t tensorsRead(const Equation &e) {
    std::set<TensorId> read;
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      if (isRead(e.body[id]))
        read.insert(e.body[id].index);
    return read.size();
  }

  /// The model's nodes of each reader that something was written into: in the order in which it was, itself last.
  void collectOrigins() {
    std::vector<std::vector<std::string>> origins(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      if (!order[i].written.empty() && !isReleased(order[i]))
        origins[i] = originOf(i);
    for (size_t i = 0; i < order.size(); ++i)
      if (!origins[i].empty())
        order[i].equation->onnxNodes = std::move(origins[i]);
  }
  static bool isReleased(const Reader &r) { return r.equation->body.nodes.empty(); }

  std::vector<std::string> originOf(size_t place) const {
    UniqueNames nodes;
    std::unordered_set<size_t> seen{place};
    std::vector<std::pair<size_t, size_t>> open{{place, 0}}; // and which of `written` comes next
    while (!open.empty()) {
      auto &[at, next] = open.back();
      const Reader &r = order[at];
      if (next < r.written.size()) {
        const size_t inner = r.written[next++];
        if (seen.insert(inner).second)
          open.push_back({inner, 0});
        continue;
      }
      nodes.add(r.equation->onnxNodes);
      open.pop_back();
    }
    return nodes.names();
  }

  /// Looked up in constants of the model, as the biases of relative positions are, at places that follow from sizes:
  /// with known sizes it would be folded.
  bool isTable(const Equation &map) const {
    const auto isOpen = [](const Axis &a) { return !a.extent.isConst(); };
    return ofConstants[map.outputs[0]] && looksUp(map) && std::ranges::any_of(map.axes, isOpen);
  }

  /// True where the only read of a tensor comes by each of its elements once.
  bool readsOnce(const Reader &reader, TensorId tensor) const {
    Shape domain;
    for (const Axis &a : reader.equation->axes)
      domain.push_back(a.extent);
    const Body &body = reader.equation->body;
    return readers[tensor].size() == 1 &&
           numElements(domain) == numElements(program.tensors[tensor].shape) &&
           std::ranges::count_if(body.reachable(bodyRoots(*reader.equation)), [&](NodeId id) {
             return isRead(body[id]) && body[id].index == tensor;
           }) == 1;
  }

  bool movementFits(const Reader &reader, TensorId tensor) const {
    const Definition &d = definitions[tensor];
    if (!d.map)
      return false;
    Profile p = profileOf(*d.map);
    if (!p.movement || (isTable(*d.map) && !readsOnce(reader, tensor)))
      return false;
    const Scalar &root = d.map->body[d.map->results[d.output]];
    if (whole[tensor])
      return root.op == ScalarOp::Read; // it exists anyway: only a plain view is as cheap
    if (p.valueReads.size() <= 1)
      return true;
    // Chains of concats would end in choices between dozens of tensors for every element.
    const Equation &e = *reader.equation;
    const bool comesAgain =
        isContraction(e) || (e.kind == EquationKind::Reduction && repetition(e, tensor) > 1);
    return !comesAgain &&
           p.valueReads.size() + profileOf(*reader.equation).valueReads.size() <= kMaxChoices + 1;
  }

  void countReaders() {
    readers.assign(program.tensors.size(), {});
    taken.assign(program.tensors.size(), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      std::set<TensorId> seen;
      const Equation &e = *order[i].equation;
      for (NodeId id : e.body.reachable(bodyRoots(e)))
        if (isRead(e.body[id]) && seen.insert(e.body[id].index).second)
          readers[e.body[id].index].push_back(i);
    }
  }

  /// How often the reader evaluates an element of the tensor, on average.
  double repetition(const Equation &reader, TensorId tensor) const {
    Shape domain;
    for (const Axis &a : reader.axes)
      domain.push_back(a.extent);
    double reads = 0;
    for (NodeId id : reader.body.reachable(bodyRoots(reader)))
      reads += isRead(reader.body[id]) && reader.body[id].index == tensor;
    double elements = typicalElements(program.tensors[tensor].shape, program.symbols);
    return elements == 0 ? 1 : reads * typicalElements(domain, program.symbols) / elements;
  }

  /// At most two cheap operations, and no more bytes to read than the map's own result has: broadcast operands
  /// are small, so that a chain of residual sums is not read again by each of its readers.
  bool isLean(const Equation &map, const Profile &p) const {
    if (p.operations > kCheapOps || p.expensive)
      return false;
    double size = typicalElements(program.tensors[map.outputs[0]].shape, program.symbols),
           total = 0;
    for (NodeId id : p.valueReads)
      total += typicalElements(program.tensors[map.body[id].index].shape, program.symbols);
    return total <= 1.25 * size + 64;
  }

  bool mayTake(const Reader &reader, TensorId tensor, const Definition &d, bool lean) const {
    const Equation &e = *reader.equation;
    if (reader.scope != d.scope || isContraction(e))
      return false;
    // Scatter indices and predicates may be evaluated apart from the values.
    if (e.kind == EquationKind::Scatter && !lean)
      return false;
    double times = repetition(e, tensor);
    return times <= 1 || (lean && e.kind == EquationKind::Map) || (lean && times <= 2);
  }

  bool arithmeticFits(const Reader &reader, TensorId tensor) {
    const Definition &d = definitions[tensor];
    if (!d.map || whole[tensor] || (isTable(*d.map) && !readsOnce(reader, tensor)))
      return false;
    auto [it, isNew] = verdicts.try_emplace(tensor);
    Verdict &v = it->second;
    if (isNew) {
      v.lean = isLean(*d.map, profileOf(*d.map));
      // All readers or none: where one needs the tensor in memory, reading it is cheapest for the others too.
      v.fits = readers[tensor].size() == 1 || v.lean;
      for (size_t i = 0; v.fits && i < readers[tensor].size(); ++i)
        v.fits = mayTake(order[readers[tensor][i]], tensor, d, v.lean);
    }
    return v.fits && mayTake(reader, tensor, d, v.lean);
  }

  struct Verdict {
    bool fits = false, lean = false;
  };

  ExprProgram &program;
  std::vector<bool> whole, ofConstants; // by tensor
  std::vector<Definition> definitions;
  std::vector<Reader> order;
  std::vector<std::vector<size_t>> readers; // by tensor: positions in `order`, as it was
  std::vector<size_t> taken;                // by tensor: of these, those that it was written into
  std::map<TensorId, Verdict> verdicts;     // of arithmeticFits
  int scopes = 0;
};

} // namespace

ExprProgram compose(ExprProgram program) {
  Composer(program).inlineMovement();
  program = eliminateDeadCode(std::move(program));
  // A map with two readers may have one after these were merged: a few rounds reach the fixpoint.
  for (int round = 0; round < kMaxRounds; ++round) {
    bool changed = Composer(program).inlineArithmetic();
    program = eliminateDeadCode(std::move(program));
    if (!changed)
      break;
  }
  return program;
}

ExprProgram simplify(ExprProgram program) {
  forEachEquation(program.items, [&](Equation &e, const DimExpr *steps) {
    if (!bodyRoots(e).empty())
      rebuild(e, program.symbols, steps, nullptr);
  });
  return program;
}

} // namespace fusec
