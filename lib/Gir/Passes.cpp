#include "Gir/Passes.h"

namespace fusec {

const std::vector<GirPass> &girPasses() {
  static const std::vector<GirPass> passes = {
      {"simplify", "drops control and buffers that do nothing", simplify},
      {"insert-syncs", "inserts the barriers that shared and global buffers need", insertSyncs},
      {"allocate", "gives shared buffers their offsets", allocate},
      {"canonicalise", "numbers and names as the text does", canonicalise},
  };
  return passes;
}

} // namespace fusec
