// What a decisions file says for its reader alone. A replay does not look at it, and whoever reviews the file does:
// where it is not so, it was edited, or what it speaks of was.
#include "Driver/Decisions.h"
#include "Driver/Sections.h"
#include "Support/Diag.h"

#include <set>
#include <sstream>

namespace fusec {

namespace {

struct Fact {
  int line;
  std::string about; // "kernel 2 schedule 0 e5": e5 of the second kernel, above its first schedule
  std::string text;
  bool mayBeOwn = false; // a comment that its reader may have added
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

/// The name that a `pattern` line gives its schedule.
Result<std::string> nameOfSchedule(const std::string &row) {
  TextReader in(row, "");
  while (!in.atEnd() && !in.accept("schedule"))
    in.next();
  return in.nameText();
}

/// What an `apart` line speaks of: a tensor, where it comes from and where it goes to.
Result<std::string> endsOf(const std::string &row) {
  TextReader in(row, "");
  FUSEC_CHECK(in.expect("apart"));
  FUSEC_CHECK(in.expect("%"));
  FUSEC_TRY(const std::string tensor, in.nameText());
  FUSEC_CHECK(in.expect("from"));
  FUSEC_TRY(const std::string producer, in.nameText());
  FUSEC_CHECK(in.expect("to"));
  FUSEC_TRY(const std::string consumer, in.nameText());
  return "apart " + quoted(tensor) + quoted(producer) + quoted(consumer);
}

std::vector<Fact> factsOf(std::string_view text, int firstLine) {
  std::vector<Fact> facts;
  std::istringstream in{std::string(text)};
  int line = firstLine, kernels = 0, schedules = 0, launches = 0;
  for (std::string row; std::getline(in, row); ++line) {
    const std::string said = words(row);
    std::istringstream part(said);
    std::string first, second, third;
    part >> first >> second >> third;
    const std::string comment = first == "launch" || first == "axis" ? commentOf(said) : "";
    const std::string schedule =
        "kernel " + std::to_string(kernels) + " schedule " + std::to_string(schedules) + " ";
    if (first == "launch")
      ++launches;
    if (first == "pattern") {
      ++schedules;
      if (Result<std::string> name = nameOfSchedule(row); name.ok())
        facts.push_back({line, schedule + "name", "schedule " + nameToText(*name)});
    } else if (first == "kernel") {
      facts.push_back({line, "kernel " + std::to_string(++kernels), said});
      schedules = 0;
    } else if (first == "apart") {
      if (Result<std::string> ends = endsOf(row); ends.ok())
        facts.push_back({line, std::move(*ends), said});
    } else if (first == "#" && second[0] == 'e' && third == "=" &&
               second.find_first_not_of("0123456789", 1) == std::string::npos) {
      facts.push_back({line, schedule + second, said, true});
    } else if (first == "launch" && !comment.empty()) {
      facts.push_back({line, "launch " + std::to_string(launches), comment});
    } else if (first == "axis" && comment.rfind("# extent ", 0) == 0) {
      facts.push_back({line, schedule + said.substr(0, said.size() - comment.size()), comment});
    }
  }
  return facts;
}

} // namespace

Diagnostics editedFacts(std::string_view text, const std::string &fileName,
                        const CompileState &state) {
  constexpr size_t kMaxTold = 8;
  Diagnostics warnings;
  if (const std::string maker = otherMaker(text); !maker.empty()) {
    warnings.push_back(
        {Diag::EditedFacts, fileName,
         "the decisions were made by " + maker +
             ", this is fusec " FUSEC_VERSION
             "; they are followed, and what they say for their reader is not looked at: "
             "emit them anew"});
    return warnings;
  }
  size_t more = 0;
  for (const Section &section : splitSections(text))
    for (const TargetState &target : state.targets) {
      if (section.target != target.target.name)
        continue;
      std::map<std::string, std::string> made;
      for (Fact &fact : factsOf(target.decisions, 1))
        made[fact.about] = std::move(fact.text);
      const std::vector<Fact> facts = factsOf(section.text, section.line);
      auto tell = [&](std::string where, std::string what) {
        if (warnings.size() == kMaxTold)
          ++more;
        else
          warnings.push_back({Diag::EditedFacts, std::move(where), std::move(what)});
      };
      std::set<std::string> found; // what the file says of it is so
      for (const Fact &fact : facts)
        if (auto is = made.find(fact.about); is != made.end() && is->second == fact.text)
          found.insert(fact.about);
      for (const Fact &fact : facts) {
        const auto is = made.find(fact.about);
        if (is == made.end()
                ? fact.mayBeOwn
                : is->second == fact.text || (fact.mayBeOwn && found.count(fact.about) != 0))
          continue;
        const bool isUnknown = is == made.end() || is->second.find(kNoReason) != std::string::npos;
        tell(fileName + ":" + std::to_string(fact.line),
             "'" + fact.text +
                 (isUnknown ? "' is not what was written there"
                            : "' is not so, it is '" + is->second + "'") +
                 "; nothing depends on it: make it what it is, or emit the decisions anew");
      }
      std::set<std::string> abouts;
      for (const Fact &fact : facts)
        abouts.insert(fact.about);
      for (const auto &[about, text] : made)
        if (about.rfind("apart ", 0) == 0 && abouts.count(about) == 0)
          tell(fileName, "the line '" + text.substr(0, text.find(kNoReason)) +
                             "...' is missing; nothing depends on it: emit the decisions anew");
    }
  if (more > 0)
    warnings.push_back({Diag::EditedFacts, fileName,
                        std::to_string(more) + " more lines for its reader are not so"});
  return warnings;
}

} // namespace fusec
