#pragma once
// Programs of tests, written from their equations alone.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace fusec::test {

/// The text of a program. Tensors have one type and are declared by the axes of the equation that makes them, which are
/// written as in the text, "i:5, j:n; k:37"; those that no equation reads are the outputs.
class ProgramText {
public:
  /// `symbols`: their lines, if the axes name any.
  explicit ProgramText(const std::string &name, std::string symbols = "", std::string type = "f32")
      : head("expr " + name + "\n" + std::move(symbols)), type(std::move(type)) {}

  /// `shape` without brackets: "5,37".
  ProgramText &input(const std::string &name, const std::string &shape) {
    inputs.push_back(name);
    declare(name, shape, " input\n");
    return *this;
  }
  /// `lets`: "let t0 = ...;", which `value` uses.
  ProgramText &map(const std::string &name, const std::string &axes, const std::string &value,
                   const std::string &lets = "") {
    return equation("map " + name + " [" + axes + "]", name, axes, value, lets);
  }
  ProgramText &reduction(const std::string &name, const std::string &axes,
                         const std::string &monoid, const std::string &value,
                         const std::string &lets = "") {
    return equation("reduction " + name + " [" + axes + "] " + monoid + " " + type, name, axes,
                    value, lets);
  }
  /// Also an output, though an equation reads it.
  ProgramText &output(const std::string &name) {
    alsoOutputs.insert(name);
    return *this;
  }

  operator std::string() const {
    ProgramText all = *this;
    std::vector<std::string> outputs;
    for (const auto &[name, shape] : made) {
      const bool isOutput = read.count(name) == 0 || alsoOutputs.count(name) != 0;
      if (isOutput)
        outputs.push_back(name);
      all.declare(name, shape, isOutput ? " output\n" : " temp\n");
    }
    return all.head + "inputs (" + list(inputs) + ")\noutputs (" + list(outputs) + ")\n" + bodies;
  }

private:
  struct Made {
    std::string name, shape;
  };

  void declare(const std::string &name, const std::string &shape, const char *kind) {
    head += "tensor %" + name + ": " + type + "[" + shape + "]" + kind;
  }

  ProgramText &equation(const std::string &first, const std::string &name, const std::string &axes,
                        const std::string &value, const std::string &lets) {
    std::string shape;
    const std::string spatial = axes.substr(0, axes.find(';'));
    for (size_t at = 0; (at = spatial.find(':', at)) != std::string::npos;) {
      const size_t end = std::min(spatial.find(',', at), spatial.size());
      shape += (shape.empty() ? "" : ",") + spatial.substr(at + 1, end - at - 1);
      at = end;
    }
    made.push_back({name, shape});
    for (const std::string &text : {lets, value})
      for (size_t at = 0; (at = text.find('%', at)) != std::string::npos; ++at)
        read.insert(text.substr(at + 1, text.find('[', at) - at - 1));
    bodies += first + "\n" + (lets.empty() ? "" : "  " + lets + "\n") + "  %" + name + " = " +
              value + "\n";
    return *this;
  }

  static std::string list(const std::vector<std::string> &names) {
    std::string out;
    for (const std::string &name : names)
      out += (out.empty() ? "%" : ", %") + name;
    return out;
  }

  std::string head, type, bodies;
  std::vector<std::string> inputs;
  std::set<std::string> read, alsoOutputs;
  std::vector<Made> made;
};

} // namespace fusec::test
