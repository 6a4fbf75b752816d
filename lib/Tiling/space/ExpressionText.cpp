// Tiling expressions as text.
#include "Support/Diag.h"
#include "Tiling/space/Place.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

namespace fusec::tiling {

namespace {

bool isName(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

} // namespace

std::vector<std::string> loopNames(const LoopSpace &space) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const SpaceLoop &loop : space.loops) {
    const std::string base = isName(loop.name) ? loop.name : "loop";
    std::string name = base;
    for (int number = 2; !taken.insert(name).second; ++number)
      name = base + std::to_string(number);
    names.push_back(name);
  }
  return names;
}

namespace {

/// What stands in a node: loops by their number, else words.
struct Part {
  int node = -1;
  std::string words;
};

class Writer {
public:
  using Parts = std::function<std::vector<Part>(int node)>;

  Writer(const Expression &expression, const LoopSpace &space, Parts parts)
      : expression(expression), names(loopNames(space)), parts(std::move(parts)),
        blank(std::ranges::all_of(names, [](const std::string &n) { return n.size() == 1; })
                  ? ""
                  : " ") {}

  /// With `closed`, parentheses around all that the node holds, unless it is nothing.
  std::string inside(int node, bool closed = false) const {
    const std::vector<Part> all = parts(node);
    if (all.size() == 1 && all[0].node >= 0 && !closed)
      return (node < 0 ? "" : blank) + loop(all[0].node);
    std::string text;
    for (const Part &part : all)
      text += (text.empty() ? "" : ",") + (part.node < 0 ? part.words : loop(part.node));
    return text.empty() || (node < 0 && !closed) ? text : "(" + text + ")";
  }
  std::string name(int number) const { return names[static_cast<size_t>(number)]; }
  const std::string &between() const { return blank; }

private:
  std::string loop(int node) const {
    return name(expression.nodes[static_cast<size_t>(node)].loop) + inside(node);
  }

  const Expression &expression;
  const std::vector<std::string> names;
  const Parts parts;
  const std::string blank;
};

std::vector<Part> loopsOf(const Expression &expression, int node) {
  std::vector<Part> parts;
  for (int child : expression.children(node))
    parts.push_back({child, ""});
  return parts;
}

} // namespace

std::string print(const Expression &expression, const LoopSpace &space) {
  return Writer(expression, space, [&](int node) { return loopsOf(expression, node); }).inside(-1);
}

std::string print(const BoundExpression &expression, const LoopSpace &space) {
  const Expression whole = expression.whole();
  const std::vector<int> standing = standingNodes(whole, space);
  const int numBlocks = static_cast<int>(expression.blocks.size());
  // By the first equation in it, each loop, and points for equations between loops.
  auto parts = [&](int node) {
    std::vector<Part> all;
    const std::vector<int> children = whole.children(node);
    for (size_t e = 0; e < standing.size() && !children.empty(); ++e) {
      if (standing[e] == node && (all.empty() || all.back().node >= 0))
        all.push_back({-1, "."});
      for (int child : children)
        if (standing[e] >= 0 && whole.isInside(standing[e], child) &&
            std::ranges::none_of(all, [&](const Part &part) { return part.node == child; }))
          all.push_back({child, ""});
    }
    for (int child : children)
      if (std::ranges::none_of(all, [&](const Part &part) { return part.node == child; }))
        all.push_back({child, ""});
    return all;
  };
  const Writer writer(whole, space, parts);
  std::string text;
  for (int loop : expression.blocks)
    text += (text.empty() ? "" : writer.between()) + writer.name(loop);
  return text + writer.inside(numBlocks - 1, numBlocks > 0);
}

std::string print(const Placement &placement, const SpaceOperands &operands,
                  const ExprProgram &program) {
  auto parts = [&](int node) {
    std::vector<Part> all;
    const size_t index = node < 0 ? placement.tree.nodes.size() : static_cast<size_t>(node);
    for (const Placement::Item &item : placement.items[index]) {
      if (item.node >= 0) {
        all.push_back({item.node, ""});
        continue;
      }
      const PlacedStatement &own = placement.statements[static_cast<size_t>(item.statement)];
      const TensorId tensor =
          own.operand < 0 ? operands.space.equations[static_cast<size_t>(own.equation)]->outputs[0]
                          : operands.operands[static_cast<size_t>(own.operand)].tensor;
      all.push_back({-1, std::string(1, "LCS"[static_cast<int>(own.kind)]) +
                             program.tensors[static_cast<size_t>(tensor)].name});
    }
    return all;
  };
  return Writer(placement.tree, operands.space, parts).inside(-1);
}

namespace {

class Reader {
public:
  Reader(std::string_view text, const LoopSpace &space)
      : text(text), space(space), names(loopNames(space)) {}

  Result<Expression> run() {
    FUSEC_CHECK(sequence(-1));
    if (at != text.size())
      return error("expected a loop or the end");
    for (size_t l = 0; l < names.size(); ++l)
      if (std::ranges::none_of(out.nodes,
                               [&](const auto &node) { return node.loop == static_cast<int>(l); }))
        return error("expected the loop " + names[l]);
    const std::vector<int> standing = standingNodes(out, space);
    for (size_t e = 0; e < standing.size(); ++e)
      if (standing[e] == -2)
        return error("expected a path with all loops of " + space.equations[e]->name);
    return canonical(out, space);
  }

private:
  Diagnostic error(const std::string &what) const {
    return {Diag::BadIrText, "tiling expression", what + ", given " + std::string(text)};
  }
  char peek() { // 0: the end
    while (at < text.size() && text[at] == ' ')
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool accept(char c) {
    const bool isNext = peek() == c;
    at += isNext ? 1 : 0;
    return isNext;
  }

  /// Trees and points between commas.
  Status sequence(int parent) {
    do {
      if (!accept('.'))
        FUSEC_CHECK(tree(parent));
    } while (accept(','));
    return success();
  }

  Status tree(int parent) {
    if (accept('(')) { // also around what is inside blocks
      if (++opened > 2 * names.size())
        return error("expected fewer parentheses");
      FUSEC_CHECK(sequence(parent));
      return accept(')') ? success() : Status(error("expected )"));
    }
    std::string word;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
      word += text[at++];
    if (word.empty())
      return error("expected a loop");
    // One loop's name, or those of several of one letter each.
    std::vector<std::string> found = {word};
    if (!std::ranges::count(names, word)) {
      found.clear();
      for (char c : word)
        found.emplace_back(1, c);
    }
    for (const std::string &name : found) {
      const auto place = std::ranges::find(names, name);
      if (place == names.end())
        return error("expected a loop in place of " + word);
      const int loop = static_cast<int>(place - names.begin());
      for (int node : out.path(parent))
        if (out.nodes[static_cast<size_t>(node)].loop == loop)
          return error("expected " + name + " once on a path");
      out.nodes.push_back({loop, parent});
      parent = static_cast<int>(out.nodes.size()) - 1;
    }
    return peek() == 0 || peek() == ',' || peek() == ')' ? success() : tree(parent);
  }

  std::string_view text;
  const LoopSpace &space;
  const std::vector<std::string> names;
  size_t at = 0, opened = 0;
  Expression out;
};

} // namespace

Result<Expression> parseExpression(std::string_view text, const LoopSpace &space) {
  return Reader(text, space).run();
}

} // namespace fusec::tiling
