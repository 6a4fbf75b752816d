// What compose has written into several readers, taken out again as one map: a transpose of the model, for instance,
// or a gather. Of two depthwise convolutions over the image x in the order [n, y, x, c], whose results lie in the order
// [n, c, y, x],
//
//   reduction a [n:1, c:64, y:28, x:28; r:3, s:3] sum f32
//     %a = mul(%x[n, y + r, x + s, c], %v[c, r, s])
//   reduction b [n:1, c:64, y:28, x:28; r:3, s:3] sum f32
//     %b = mul(%x[n, y + r, x + s, c], %w[c, r, s])
//
// each lane would gather. They share the copy
//
//   map x.shared [i0:1, i1:64, i2:30, i3:30]
//     %x.shared = %x[i0, i2, i3, i1]
//
// and read %x.shared[n, c, y + r, x + s]. A copy holds all elements, so that reads of different parts, with padding
// around them, share it. An index that itself is read, as %x[%rows[i], k] has it, is looked up in the copy: its place
// is then that of the index. The copy's dimensions lie in the order of the reader's axes, lanes last.
//
// Not handled: equations inside scans, indices that are read and depend on an axis besides, constants, which are packed
// when the model is compiled (unless gathered), and steps of more than one element.
#include "Expr/SharedCopies.h"
#include "Expr/transforms/CopyView.h"
#include "Expr/transforms/Walk.h"
#include "Support/Diag.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec {

namespace {

constexpr double kUsesAnElement = 2; // else the copy gathers as often as its readers

/// One copy that a list of items could have.
struct Candidate {
  SharedCopy copy;
  Equation map;
  TensorId tensor = -1;
  std::string elements; // what it holds, in the natural order: equal for all its readers
  Order order;
  std::vector<const Equation *> readers; // of the program
};

class Finder {
public:
  explicit Finder(const ExprProgram &program) : program(program) {
    for (const Tensor &t : program.tensors)
      names.insert(t.name);
    noteNames(program.items);
    visit(program.items);
  }
  std::vector<Candidate> found;

  /// What the read would find in a copy, as Candidate::elements; empty where it has no view.
  static std::string elementsOf(const ExprProgram &program, const Equation &e, const Scalar &read,
                                const std::optional<View> &view) {
    if (!view)
      return "";
    if (!view->gathers)
      return "all";
    Equation map = copyEquation(program, e, read, *view, naturalOrder(view->at.size()));
    map.outputs = {view->tensor}; // any: the text needs one
    std::string text = canonicalText(map, program);
    // Maps that differ in tensors or symbols alone have one canonical text, but pick other elements.
    for (const Scalar &s : map.body.nodes)
      if (isRead(s))
        text += " " + std::to_string(s.index);
      else if (s.op == ScalarOp::Dim)
        text += " " + s.dim.str(program.symbols);
    return text;
  }

private:
  struct Use {
    const Equation *equation;
    NodeId read;
    View view;
    std::string elements;
  };

  void noteNames(const std::vector<Item> &items) {
    for (const Item &item : items)
      if (const auto *e = std::get_if<Equation>(&item.value)) {
        names.insert(e->name);
      } else {
        noteNames(std::get<Control>(item.value).thenItems);
        noteNames(std::get<Control>(item.value).elseItems);
      }
  }

  void visit(const std::vector<Item> &items) {
    std::map<TensorId, std::vector<const Equation *>> readers;
    for (const Item &item : items) {
      const auto *e = std::get_if<Equation>(&item.value);
      if (!e) {
        visit(std::get<Control>(item.value).thenItems);
        visit(std::get<Control>(item.value).elseItems);
        continue;
      }
      if (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction)
        continue;
      std::set<TensorId> read;
      for (NodeId id : e->body.reachable(bodyRoots(*e)))
        if (isRead(e->body[id]) && read.insert(e->body[id].index).second)
          readers[e->body[id].index].push_back(e);
    }
    for (const auto &[tensor, equations] : readers)
      if (equations.size() > 1)
        visit(tensor, equations);
  }

  void visit(TensorId tensor, const std::vector<const Equation *> &equations) {
    std::map<std::string, std::vector<Use>> uses; // by elements
    for (const Equation *e : equations)
      for (NodeId id : e->body.reachable(bodyRoots(*e)))
        if (const Scalar &s = e->body[id]; isRead(s) && s.index == tensor)
          if (std::optional<View> view = viewOf(program, e->body, s)) {
            const std::string elements = elementsOf(program, *e, s, view);
            uses[elements].push_back({e, id, std::move(*view), elements});
          }
    for (const auto &[elements, list] : uses)
      addOrders(list);
  }

  void addOrders(const std::vector<Use> &uses) {
    std::map<Order, std::vector<const Use *>> wanting;
    for (const Use &use : uses) {
      const Order order = wantedOrder(*use.equation, use.view);
      if (use.view.gathers || order != naturalOrder(order.size()))
        wanting[order].push_back(&use);
    }
    for (const auto &[order, own] : wanting) {
      double points = 0;
      std::set<const Equation *> distinct;
      for (const Use *use : own) {
        Shape domain;
        for (const Axis &axis : use->equation->axes)
          domain.push_back(axis.extent);
        points += typicalElements(domain, program.symbols);
        distinct.insert(use->equation);
      }
      const View &view = own.front()->view;
      if (distinct.size() < 2 ||
          points < kUsesAnElement * typicalElements(view.extents, program.symbols))
        continue;
      add(uses, *own.front(), order);
    }
  }

  void add(const std::vector<Use> &uses, const Use &first, const Order &order) {
    Candidate candidate;
    const std::string base = program.tensors[first.view.tensor].name + ".shared";
    candidate.copy.name = base;
    for (int n = 2; !names.insert(candidate.copy.name).second; ++n)
      candidate.copy.name = base + std::to_string(n);
    candidate.map =
        copyEquation(program, *first.equation, first.equation->body[first.read], first.view, order);
    candidate.tensor = first.view.tensor;
    candidate.elements = first.elements;
    candidate.order = order;
    std::vector<std::string> nodes = first.equation->onnxNodes; // those that all readers stand for
    for (const Use &use : uses) {
      if (candidate.readers.empty() || candidate.readers.back() != use.equation) {
        candidate.readers.push_back(use.equation);
        candidate.copy.readers.push_back(use.equation->name);
      }
      std::erase_if(nodes, [&](const std::string &node) {
        const std::vector<std::string> &own = use.equation->onnxNodes;
        return std::count(own.begin(), own.end(), node) == 0;
      });
    }
    candidate.map.onnxNodes = nodes.empty() ? first.equation->onnxNodes : std::move(nodes);
    found.push_back(std::move(candidate));
  }

  const ExprProgram &program;
  std::set<std::string> names;
};

/// The list that holds the first of the readers, and its place there.
std::pair<std::vector<Item> *, size_t> placeOf(std::vector<Item> &items,
                                               const std::vector<std::string> &readers) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (const auto *e = std::get_if<Equation>(&items[i].value)) {
      if (std::count(readers.begin(), readers.end(), e->name) != 0)
        return {&items, i};
      continue;
    }
    Control &control = std::get<Control>(items[i].value);
    for (std::vector<Item> *list : {&control.thenItems, &control.elseItems})
      if (auto place = placeOf(*list, readers); place.first)
        return place;
  }
  return {nullptr, 0};
}

Equation readingCopy(const ExprProgram &program, const Equation &reader, const Candidate &candidate,
                     TensorId made) {
  Equation out = reader;
  rebuild(out, program.symbols, nullptr,
          [&](Body &body, const Scalar &copied, NodeId original) -> NodeId {
            const Scalar &was = reader.body[original];
            if (!isRead(was) || was.index != candidate.tensor)
              return kNoNode;
            const std::optional<View> view = viewOf(program, reader.body, was);
            if (Finder::elementsOf(program, reader, was, view) != candidate.elements)
              return kNoNode;
            Scalar read = copied;
            read.index = made;
            read.args.resize(was.op == ScalarOp::ReadIf ? 2 : 0);
            for (NodeId place : placesInCopy(body, copied, candidate.order))
              read.args.push_back(place);
            return body.add(std::move(read));
          });
  return out;
}

/// Adds the candidate's tensor to the program, and makes its map write it.
TensorId addCopy(ExprProgram &program, Candidate &candidate) {
  Tensor value;
  value.name = candidate.copy.name;
  value.type = program.tensors[candidate.tensor].type;
  for (const Axis &axis : candidate.map.axes)
    value.shape.push_back(axis.extent);
  candidate.map.name = candidate.copy.name;
  candidate.map.outputs = {program.addTensor(std::move(value))};
  return candidate.map.outputs[0];
}

} // namespace

PossibleCopies possibleCopies(const ExprProgram &program) {
  PossibleCopies possible;
  Finder finder(program);
  if (finder.found.empty())
    return possible;
  possible.program.symbols = program.symbols;
  possible.program.tensors = program.tensors;
  for (Candidate &candidate : finder.found) {
    const TensorId made = addCopy(possible.program, candidate);
    std::vector<Equation> readers;
    for (const Equation *reader : candidate.readers)
      readers.push_back(readingCopy(program, *reader, candidate, made));
    possible.copies.push_back(
        {std::move(candidate.copy), std::move(candidate.map), std::move(readers)});
  }
  return possible;
}

Result<ExprProgram> withSharedCopies(const ExprProgram &program,
                                     const std::vector<SharedCopy> &copies) {
  ExprProgram out = program;
  std::vector<Candidate> candidates = Finder(program).found;
  for (const SharedCopy &copy : copies) {
    const auto refuse = [&](const std::string &why) {
      return Diagnostic{Diag::BadIr, "plan: copy " + copy.name, why};
    };
    const auto at = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const Candidate &c) { return c.copy.name == copy.name; });
    if (at == candidates.end())
      return refuse("no equations of the program could share such a copy, or it is made twice");
    if (copy.readers.empty())
      return refuse("no equation reads it");
    for (const std::string &reader : copy.readers)
      if (std::count(at->copy.readers.begin(), at->copy.readers.end(), reader) == 0)
        return refuse("equation " + reader + " reads nothing that it holds");
    const TensorId made = addCopy(out, *at);
    const auto [list, place] = placeOf(out.items, copy.readers);
    for (Item &item : *list)
      if (auto *e = std::get_if<Equation>(&item.value))
        if (std::count(copy.readers.begin(), copy.readers.end(), e->name) != 0)
          *e = readingCopy(out, *e, *at, made);
    list->insert(list->begin() + static_cast<std::ptrdiff_t>(place), Item{std::move(at->map)});
    candidates.erase(at);
  }
  return out;
}

} // namespace fusec
