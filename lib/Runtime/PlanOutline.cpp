#include "Runtime/PlanOutline.h"

#include <algorithm>
#include <map>

namespace fusec::rt {

namespace {

/// Numbers for texts: the same text gets the same one.
class Numbers {
public:
  /// True: the text is a new one.
  bool add(const std::string &text, int32_t &number) {
    const auto [at, isNew] = known.try_emplace(text, static_cast<int32_t>(known.size()));
    number = at->second;
    return isNew;
  }

private:
  std::map<std::string, int32_t> known;
};

// Texts that differ where what they are of does: an operation is never one of the marks behind expressions.
constexpr char kEndOfCode = '\x7f', kEndOfGuards = '\x7e';

void append(std::string &text, int64_t number) {
  text.append(reinterpret_cast<const char *>(&number), sizeof number);
}
void append(std::string &text, const bundle::DimCode &code) {
  for (const bundle::DimCode::Instr &i : code.code) {
    text += static_cast<char>(i.op);
    append(text, i.value);
  }
  text += kEndOfCode;
}

std::string textOf(const bundle::Tensor &tensor) {
  std::string text(1, static_cast<char>(tensor.type));
  for (const bundle::DimCode &dim : tensor.shape)
    append(text, dim);
  return text;
}

std::string guardsOf(const bundle::Step &step) {
  std::string text;
  for (const bundle::Variant &variant : step.variants) {
    for (const bundle::Guard &guard : variant.guards) {
      append(text, guard.value);
      append(text, guard.modulus);
    }
    text += kEndOfGuards;
  }
  return text;
}

class Outliner {
public:
  Outliner(const bundle::Model &model, const bundle::Program &program)
      : model(model), program(program), symbolSegments(model.symbols.size(), 0) {
    out.model = &model;
    out.program = &program;
  }

  PlanOutline build() {
    out.segments.emplace_back();
    findSegments(program.steps);
    for (const bundle::DimRule &rule : model.rules)
      if (const int32_t at = std::max(segmentOf(rule.left), segmentOf(rule.right)); at > 0)
        segment(at).rules.push_back(&rule);
    addTensors();
    addKernels();
    addNodes(program.steps, 0, out.nodes);
    for (PlanOutline::Segment &s : out.segments) {
      std::vector<Lifetime> lives;
      for (int32_t t : s.temps)
        lives.push_back({tensor(t).firstStep, tensor(t).lastStep});
      s.lifetimes = Lifetimes(lives);
    }
    return std::move(out);
  }

private:
  const bundle::Tensor &tensor(int32_t t) const { return program.tensors[static_cast<size_t>(t)]; }
  PlanOutline::Segment &segment(int32_t s) { return out.segments[static_cast<size_t>(s)]; }

  int32_t segmentOf(const bundle::DimCode &code) const {
    int32_t last = 0;
    code.forEachSymbol([&](SymbolId s) {
      if (static_cast<size_t>(s) < symbolSegments.size()) // the inferred sizes of rules are behind
        last = std::max(last, symbolSegments[static_cast<size_t>(s)]);
    });
    return last;
  }
  int32_t segmentOf(const std::vector<bundle::DimCode> &list) const {
    int32_t last = 0;
    for (const bundle::DimCode &code : list)
      last = std::max(last, segmentOf(code));
    return last;
  }
  int32_t guardSegment(const bundle::Step &step) const {
    int32_t last = 0;
    for (const bundle::Variant &v : step.variants)
      for (const bundle::Guard &g : v.guards)
        last = std::max(last, segmentOf(g.value));
    return last;
  }

  void findSegments(const std::vector<bundle::Step> &steps) {
    for (const bundle::Step &s : steps) {
      // A where's lists may each have a step for the size, of which a run takes one.
      if (s.kind == bundle::StepKind::Size && symbolSegments[static_cast<size_t>(s.symbol)] == 0) {
        symbolSegments[static_cast<size_t>(s.symbol)] = static_cast<int32_t>(out.segments.size());
        PlanOutline::Segment &made = out.segments.emplace_back();
        made.step = &s;
        for (const bundle::DataSize &d : model.dataSizes)
          if (d.symbol == s.symbol)
            made.size = &d;
      }
      findSegments(s.thenSteps);
      findSegments(s.elseSteps);
    }
  }

  void addTensors() {
    Numbers numbers;
    const size_t count = program.tensors.size();
    out.segmentOf.resize(count);
    out.typeOf.resize(count);
    out.isNeeded.assign(count, false);
    out.takers.resize(count);
    isGiven.assign(count, false);
    overwrittenBy.assign(count, 0);
    for (const auto *side : {&program.inputs, &program.outputs})
      for (int32_t t : *side)
        isGiven[static_cast<size_t>(t)] = true;
    for (size_t i = 0; i < count; ++i) {
      const bundle::Tensor &t = program.tensors[i];
      const auto number = static_cast<int32_t>(i);
      PlanOutline::Segment &s = segment(out.segmentOf[i] = segmentOf(t.shape));
      if (numbers.add(textOf(t), out.typeOf[i])) {
        out.types.push_back(number);
        s.types.push_back(out.typeOf[i]);
      }
      s.tensors.push_back(number);
      if (t.kind == bundle::TensorKind::Constant)
        out.constants.push_back(number);
      if (t.kind == bundle::TensorKind::Output)
        s.outputs.push_back(number);
      if (t.kind == bundle::TensorKind::Temp && t.firstStep >= 0)
        s.temps.push_back(number);
    }
  }

  void addKernels() {
    for (const bundle::Kernel &k : program.kernels) {
      int32_t last = std::max(segmentOf(k.grids), segmentOf(k.rounds));
      for (SymbolId d : k.dims)
        last = std::max(last, symbolSegments[static_cast<size_t>(d)]);
      segment(last).kernels.push_back(static_cast<int32_t>(kernelSegments.size()));
      kernelSegments.push_back(last);
    }
  }

  void addNodes(const std::vector<bundle::Step> &steps, int32_t side,
                std::vector<PlanOutline::Node> &nodes) {
    for (const bundle::Step &s : steps) {
      PlanOutline::Node node;
      node.kind = s.kind;
      node.condition = s.condition;
      node.tripCount = s.tripCount;
      node.iteration = s.iteration;
      node.nextCondition = s.nextCondition;
      for (int32_t t : {s.condition, s.tripCount, s.iteration, s.nextCondition})
        need(t);
      if (s.kind == bundle::StepKind::Size)
        node.segment = symbolSegments[static_cast<size_t>(s.symbol)];
      if (s.kind == bundle::StepKind::Launch)
        node.launch = addLaunch(s, side);
      int32_t thenSide = side, elseSide = side;
      if (s.kind == bundle::StepKind::Where) {
        node.where = static_cast<int32_t>(out.wheres.size());
        out.wheres.push_back({&s, side});
        thenSide = 2 * node.where + 1;
        elseSide = 2 * node.where + 2;
      }
      addNodes(s.thenSteps, thenSide, node.thenNodes);
      addNodes(s.elseSteps, elseSide, node.elseNodes);
      addCopies(s.before, node.before);
      addCopies(s.thenCopies, node.thenCopies);
      addCopies(s.elseCopies, node.elseCopies);
      addCopies(s.after, node.after);
      nodes.push_back(std::move(node));
    }
  }
  void need(int32_t tensor) {
    if (tensor >= 0)
      out.isNeeded[static_cast<size_t>(tensor)] = true;
  }

  int32_t addLaunch(const bundle::Step &step, int32_t side) {
    const auto number = static_cast<int32_t>(out.launches.size());
    int32_t choice = 0, last = guardSegment(step);
    if (choiceNumbers.add(guardsOf(step), choice)) {
      out.choices.push_back(&step);
      segment(last).choices.push_back(choice);
    }
    out.launches.push_back({&step, choice, side});
    for (const bundle::Variant &v : step.variants) {
      last = std::max(last, kernelSegments[static_cast<size_t>(v.kernel)]);
      for (int32_t t : v.arguments)
        last = std::max(last, out.segmentOf[static_cast<size_t>(t)]);
    }
    segment(last).launches.push_back(number);
    for (const bundle::Variant &v : step.variants)
      for (int32_t t : v.arguments) {
        // It has its place before it is known which variant the launch has.
        if (out.segmentOf[static_cast<size_t>(t)] < last)
          need(t);
        std::vector<int32_t> &takers = out.takers[static_cast<size_t>(t)];
        if (last == 0 && isGiven[static_cast<size_t>(t)] &&
            (takers.empty() || takers.back() != number))
          takers.push_back(number);
      }
    return number;
  }

  void addCopies(const std::vector<bundle::Copy> &list, std::vector<PlanOutline::Copy> &copies) {
    std::vector<int32_t> staged;
    ++copyLists;
    for (const bundle::Copy &c : list) {
      out.copies.push_back(c);
      need(c.from);
      need(c.to);
      if (c.from == c.to)
        continue;
      const bool waits = overwrittenBy[static_cast<size_t>(c.from)] == copyLists;
      if (waits)
        staged.push_back(c.from);
      copies.push_back({c.from, c.to, waits});
      overwrittenBy[static_cast<size_t>(c.to)] = copyLists;
    }
    if (!staged.empty())
      out.staged.push_back(std::move(staged));
  }

  const bundle::Model &model;
  const bundle::Program &program;
  PlanOutline out;
  std::vector<int32_t> symbolSegments, kernelSegments;
  std::vector<bool> isGiven;          // by tensor: of an input or output
  std::vector<int32_t> overwrittenBy; // by tensor: the last list of copies that does
  int32_t copyLists = 0;
  Numbers choiceNumbers;
};

} // namespace

PlanOutline outlineOf(const bundle::Model &model, const bundle::Program &program) {
  return Outliner(model, program).build();
}

} // namespace fusec::rt
