#pragma once
#include "Expr/Expr.h"
#include "Graph/Graph.h"

namespace fusec {

class TextReader;

/// An input of the model whose memory may be that of an output: a run then writes what is new, and nothing is copied.
///
/// A cache that grows: the output is the input and, behind it along `axis`, new rows (Concat). In memory both may have
/// room for more rows than they have, `inputRoom` and `outputRoom`: their tensors are so much longer than the model's,
/// and with as much room as makes them equally long a row lies at one place in both.
/// A cache that stays as long as it is: the output is the input with some elements written (TensorScatter and other
/// scatters); no rooms, and `axis` is 0.
///
/// All three are symbols with the definition 0, which holds in each run that shares no memory, and several caches of
/// equal lengths have them in common.
struct CachePair {
  std::string input, output; // of the model
  int axis = 0;
  SymbolId inputRoom = -1, outputRoom = -1; // -1: stays as long as it is
  SymbolId kept =
      -1; // rows of the output, from the first one on, that need not be stored: they are there

  bool grows() const { return inputRoom >= 0; }
};

/// Finds the caches of a graph that `program` has been made of, and lets its equations ask for the symbols, which are
/// added. An input that equations take as a whole, that a run may leave out or that is read otherwise while it changes
/// is none; nor is one of a fixed length that grows.
std::vector<CachePair> openCaches(const Graph &graph, ExprProgram &program);

/// The shape that the model has for a tensor of such a program, of which equations read nothing else.
Shape withoutRoom(Shape shape, const std::vector<Symbol> &symbols);

/// Lines of a textual IR:
///   cache "past" to "present" along 2 rooms past.room present.room kept present.kept
///   cache "past" to "present" along 0 kept present.kept
std::string cachesText(const std::vector<CachePair> &caches, const std::vector<Symbol> &symbols);
Result<std::vector<CachePair>> parseCaches(TextReader &in, const std::vector<Symbol> &symbols);

} // namespace fusec
