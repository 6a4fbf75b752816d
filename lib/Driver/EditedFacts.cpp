// What a decisions file says for its reader alone. A replay does not look at it, and whoever reviews the file does:
// where it is not so, it was edited, or what it speaks of was.
#include "Driver/Decisions.h"
#include "Driver/Sections.h"

#include <set>
#include <sstream>

namespace fusec {

namespace {

struct Fact {
  int line;
  std::string about; // "kernel 2 e5": the second kernel's equation
  std::string text;
};

/// The words with one space between them.
std::string words(const std::string &text) {
  std::istringstream in(text);
  std::string out;
  for (std::string word; in >> word;)
    out += (out.empty() ? "" : " ") + word;
  return out;
}

/// What stands behind the line's #, which is none inside of a quoted name.
std::string commentOf(const std::string &line) {
  bool isQuoted = false;
  for (size_t i = 0; i < line.size(); ++i)
    if (line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      isQuoted = !isQuoted;
    else if (line[i] == '#' && !isQuoted)
      return line.substr(i);
  return "";
}

std::vector<Fact> factsOf(std::string_view text, int firstLine) {
  std::vector<Fact> facts;
  std::istringstream in{std::string(text)};
  int line = firstLine, kernels = 0, launches = 0;
  for (std::string row; std::getline(in, row); ++line) {
    const std::string said = words(row);
    std::istringstream part(said);
    std::string first, second, third;
    part >> first >> second >> third;
    if (first == "kernel")
      facts.push_back({line, "kernel " + std::to_string(++kernels), said});
    else if (first == "#" && second[0] == 'e' && third == "=" &&
             second.find_first_not_of("0123456789", 1) == std::string::npos)
      facts.push_back({line, "kernel " + std::to_string(kernels) + " " + second, said});
    else if (first == "launch" && !commentOf(said).empty())
      facts.push_back({line, "launch " + std::to_string(++launches), commentOf(said)});
    else if (first == "launch")
      ++launches;
  }
  return facts;
}

} // namespace

Diagnostics editedFacts(std::string_view text, const std::string &fileName,
                        const CompileState &state) {
  constexpr size_t kMaxTold = 8;
  Diagnostics warnings;
  if (!isOfThisVersion(text)) // whose numbers may be others
    return warnings;
  size_t more = 0;
  for (const Section &section : splitSections(text))
    for (const TargetState &target : state.targets) {
      if (section.target != target.target.name)
        continue;
      std::map<std::string, std::set<std::string>> made; // variants of a schedule repeat names
      for (Fact &fact : factsOf(target.decisions, 1))
        made[fact.about].insert(std::move(fact.text));
      for (const Fact &fact : factsOf(section.text, section.line)) {
        const std::set<std::string> &is = made[fact.about];
        if (is.count(fact.text) != 0 || (warnings.size() == kMaxTold && ++more))
          continue;
        warnings.push_back({Diag::EditedFacts, fileName + ":" + std::to_string(fact.line),
                            "'" + fact.text + "' is not so" +
                                (is.empty() ? "" : ", it is '" + *is.begin() + "'") +
                                "; nothing depends on it: make it what it is, or emit the "
                                "decisions anew"});
      }
    }
  if (more > 0)
    warnings.push_back({Diag::EditedFacts, fileName,
                        std::to_string(more) + " more lines for its reader are not so"});
  return warnings;
}

} // namespace fusec
