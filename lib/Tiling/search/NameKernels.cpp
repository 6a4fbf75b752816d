#include "Tiling/search/NameKernels.h"

#include "Expr/OpWeight.h"
#include "Tiling/verify/Rules.h"

namespace fusec::tiling {

namespace {

/// The statements that sum products and name no kernel.
void addProducts(std::span<TreeNode> nodes, const ScheduledProgram &program,
                 std::vector<LeafNode *> &found) {
  for (TreeNode &node : nodes) {
    addProducts(node.children(), program, found);
    if (LeafNode *leaf = node.leaf(); leaf && leaf->kind == LeafKind::Compute &&
                                      leaf->kernel.empty() &&
                                      isProduct(*program.equations[leaf->equation]))
      found.push_back(leaf);
  }
}

} // namespace

void nameKernels(Schedule &schedule, const ScheduledProgram &program, const Target &target) {
  std::vector<LeafNode *> products;
  if (!target.kernels.empty())
    addProducts(schedule.tree, program, products);
  if (products.empty())
    return;
  const BoundSchedule bound(schedule, program); // sees names as they change
  for (LeafNode *leaf : products)
    for (const MicroKernel &kernel : target.kernels) {
      leaf->kernel = kernel.name;
      if (kernelProblems(bound, &target).empty())
        break;
      leaf->kernel.clear();
    }
}

} // namespace fusec::tiling
