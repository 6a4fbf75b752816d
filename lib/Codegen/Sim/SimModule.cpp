#include "Codegen/Sim/SimModule.h"

#include "fusec/bundle_format.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/ReplaceConstant.h"

#include <cstddef>
#include <map>

namespace fusec {
namespace {

using llvm::Value;

/// Turns one entry `void(buffers..., dims..., [i64 blocks, ptr words])` into `void(fusec_sim_thread *)`: the number
/// of blocks stands behind the dims, and the simulator keeps barrier and counters itself.
class SimPhase {
public:
  SimPhase(llvm::Function &gpu, const GirKernel &kernel)
      : gpu(gpu), kernel(kernel), module(*gpu.getParent()), context(module.getContext()),
        b(context) {}

  void run() {
    announceAccesses();
    std::string name = gpu.getName().str();
    gpu.setName("");
    ptr = llvm::PointerType::get(context, 0);
    llvm::Type *i32 = b.getInt32Ty();
    auto *type = llvm::FunctionType::get(b.getVoidTy(), {ptr}, false);
    sim = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    sim->addFnAttr(llvm::Attribute::NoUnwind);
    thread = sim->getArg(0);
    auto *entry = llvm::BasicBlock::Create(context, "start", sim);
    sim->splice(sim->end(), &gpu);
    b.SetInsertPoint(entry);
    hookTable = field(ptr, offsetof(fusec_sim_thread, hooks));
    Value *buffers = field(ptr, offsetof(fusec_sim_thread, buffers));
    Value *dims = field(ptr, offsetof(fusec_sim_thread, dims));
    unsigned index = 0;
    const unsigned params = kernel.numParams();
    for (llvm::Argument &arg : gpu.args()) {
      Value *v = llvm::PoisonValue::get(arg.getType());
      if (index < params)
        v = b.CreateAddrSpaceCast(b.CreateLoad(ptr, b.CreateConstGEP1_64(ptr, buffers, index)),
                                  arg.getType());
      else if (!arg.getType()->isPointerTy())
        v = b.CreateLoad(b.getInt64Ty(),
                         b.CreateConstGEP1_64(b.getInt64Ty(), dims, index - params));
      if (!llvm::isa<llvm::Constant>(v))
        v->takeName(&arg);
      arg.replaceAllUsesWith(v);
      ++index;
    }
    if (auto *shared = module.getNamedGlobal(name + "_shared")) {
      Value *memory =
          b.CreateAddrSpaceCast(field(ptr, offsetof(fusec_sim_thread, shared)), shared->getType());
      llvm::convertUsersOfConstantsToInstructions({shared});
      shared->replaceAllUsesWith(memory);
      shared->eraseFromParent();
    }
    threadNumber = field(i32, offsetof(fusec_sim_thread, thread));
    blockNumber = b.CreateTrunc(field(b.getInt64Ty(), offsetof(fusec_sim_thread, block)), i32);
    b.CreateBr(&*std::next(sim->begin()));
    replaceMachine();
    countFlops();
    gpu.eraseFromParent();
  }

private:
  Value *field(llvm::Type *type, size_t offset) {
    return b.CreateLoad(type, b.CreateConstGEP1_64(b.getInt8Ty(), thread, offset));
  }

  /// Marks each access to memory that the simulator watches by a call in front of it.
  void announceAccesses() {
    llvm::SmallVector<llvm::Instruction *> accesses;
    for (llvm::Instruction &i : llvm::instructions(gpu))
      if (const Value *p = llvm::getLoadStorePointerOperand(&i);
          p && p->getType()->getPointerAddressSpace() != 0)
        accesses.push_back(&i);
    llvm::DominatorTree dominators(gpu);
    const llvm::LoopInfo loops(dominators);
    llvm::Type *i32 = b.getInt32Ty(), *generic = llvm::PointerType::get(context, 0);
    auto marker = module.getOrInsertFunction(
        "fusec.sim.access",
        llvm::FunctionType::get(b.getVoidTy(), {generic, i32, i32, i32, b.getInt64Ty()}, false));
    for (llvm::Instruction *i : accesses) {
      Value *iteration = iterationOf(loops.getLoopFor(i->getParent()));
      b.SetInsertPoint(i);
      Value *p = const_cast<Value *>(llvm::getLoadStorePointerOperand(i));
      auto *arg = llvm::dyn_cast<llvm::Argument>(llvm::getUnderlyingObject(p, 0));
      const int64_t bytes = module.getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(i));
      const int flags = llvm::isa<llvm::LoadInst>(i) ? FUSEC_SIM_READ : FUSEC_SIM_WRITE;
      b.CreateCall(marker, {b.CreateAddrSpaceCast(p, generic), b.getInt32(bytes), b.getInt32(flags),
                            b.getInt32(arg ? static_cast<int>(arg->getArgNo()) : -1), iteration});
    }
  }

  /// The iteration of the loop and of those around it as one number.
  Value *iterationOf(const llvm::Loop *loop) {
    if (!loop)
      return b.getInt64(0);
    if (const auto known = iterations.find(loop); known != iterations.end())
      return known->second;
    constexpr uint64_t kSpread =
        0x9e3779b97f4a7c15; // odd, so that iterations of others lie elsewhere
    Value *around = iterationOf(loop->getParentLoop());
    if (auto *of = llvm::dyn_cast<llvm::Instruction>(around))
      b.SetInsertPoint(of->getParent(), of->getParent()->getFirstInsertionPt());
    Value *first = b.CreateMul(around, b.getInt64(kSpread));
    llvm::BasicBlock *header = loop->getHeader();
    b.SetInsertPoint(header, header->begin());
    llvm::PHINode *iteration = b.CreatePHI(b.getInt64Ty(), 2, "iteration");
    b.SetInsertPoint(header, header->getFirstInsertionPt());
    Value *next = b.CreateAdd(iteration, b.getInt64(1));
    for (llvm::BasicBlock *before : llvm::predecessors(header))
      iteration->addIncoming(loop->contains(before) ? next : first, before);
    return iterations[loop] = iteration;
  }

  /// Floating-point operations of one instruction as SimCounts counts them: a fused multiply-add is two; comparisons,
  /// minima, signs, roundings and conversions are none. A call of a function of the module is a remainder.
  static int flopsOf(const llvm::Instruction &i) {
    switch (i.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
    case llvm::Instruction::FRem: return 1;
    default: break;
    }
    const auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
    const llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
    if (!callee || !call->getType()->isFloatingPointTy())
      return 0;
    if (callee->getIntrinsicID() == llvm::Intrinsic::fma)
      return 2;
    return callee->getIntrinsicID() == llvm::Intrinsic::sqrt || !callee->isDeclaration() ? 1 : 0;
  }

  /// Adds what a basic block computes to the thread's count at the block's end.
  void countFlops() {
    llvm::Type *i64 = b.getInt64Ty();
    for (llvm::BasicBlock &block : *sim) {
      int64_t flops = 0;
      for (const llvm::Instruction &i : block)
        flops += flopsOf(i);
      if (flops == 0)
        continue;
      b.SetInsertPoint(block.getTerminator());
      Value *at = b.CreateConstGEP1_64(b.getInt8Ty(), thread, offsetof(fusec_sim_thread, flops));
      b.CreateStore(b.CreateAdd(b.CreateLoad(i64, at), b.getInt64(flops)), at);
    }
  }

  Value *hook(size_t offset, llvm::Type *result, std::vector<Value *> args) {
    Value *f = b.CreateLoad(ptr, b.CreateConstGEP1_64(b.getInt8Ty(), hookTable, offset));
    std::vector<llvm::Type *> types;
    args.insert(args.begin(), thread);
    args.push_back(b.getInt32(site));
    for (Value *a : args)
      types.push_back(a->getType());
    return b.CreateCall(llvm::FunctionType::get(result, types, false), f, args);
  }

  Value *shuffle(Value *v, Value *laneMask) {
    Value *r = hook(offsetof(fusec_sim_hooks, shuffle_xor), b.getInt64Ty(),
                    {b.CreateZExt(v, b.getInt64Ty()), laneMask});
    return b.CreateTrunc(r, b.getInt32Ty());
  }

  /// Sites are numbered in program order.
  void replaceMachine() {
    llvm::SmallVector<llvm::CallInst *> calls;
    for (llvm::Instruction &i : llvm::instructions(*sim))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&i); call && call->getCalledFunction())
        calls.push_back(call);
    llvm::Type *none = b.getVoidTy();
    for (llvm::CallInst *call : calls) {
      llvm::StringRef name = call->getCalledFunction()->getName();
      if (!name.starts_with("fusec.gpu.") && !name.starts_with("fusec.sim."))
        continue;
      b.SetInsertPoint(call);
      Value *r = nullptr;
      if (name == "fusec.gpu.thread") {
        r = threadNumber;
      } else if (name == "fusec.gpu.block") {
        r = blockNumber;
      } else if (name == "fusec.gpu.sync.block") {
        hook(offsetof(fusec_sim_hooks, block_sync), none, {});
        ++site;
      } else if (name == "fusec.gpu.sync.grid") {
        hook(offsetof(fusec_sim_hooks, grid_sync), none, {});
        ++site;
      } else if (name == "fusec.gpu.sync.begin") {
        hook(offsetof(fusec_sim_hooks, begin_block), none,
             {call->getArgOperand(0), call->getArgOperand(1)});
        ++site;
      } else if (name == "fusec.gpu.sync.signal") {
        hook(offsetof(fusec_sim_hooks, signal), none, {call->getArgOperand(1)});
        ++site;
      } else if (name == "fusec.gpu.sync.wait") {
        hook(offsetof(fusec_sim_hooks, wait), none,
             {call->getArgOperand(1), call->getArgOperand(2), call->getArgOperand(3)});
        ++site;
      } else if (name == "fusec.gpu.sync.leave") {
        // every launch begins with counters of its own
      } else if (name == "fusec.gpu.sync.unit") {
        hook(offsetof(fusec_sim_hooks, unit_sync), none, {});
        ++site;
      } else if (name == "fusec.gpu.shuffle.xor") {
        r = shuffle(call->getArgOperand(0), call->getArgOperand(1));
        ++site;
      } else if (name == "fusec.gpu.lane0") {
        // After the step of distance d, lanes that differ in the bits up to d only hold the same.
        r = call->getArgOperand(0);
        for (int d = 1; d < kernel.lanes; d *= 2, ++site) {
          Value *other = shuffle(r, b.getInt32(d));
          Value *bit = b.CreateICmpNE(b.CreateAnd(threadNumber, b.getInt32(d)), b.getInt32(0));
          r = b.CreateSelect(bit, other, r);
        }
      } else {
        hook(offsetof(fusec_sim_hooks, access), none,
             {call->getArgOperand(0), call->getArgOperand(1), call->getArgOperand(2),
              call->getArgOperand(3), call->getArgOperand(4)});
        ++site;
      }
      if (r)
        call->replaceAllUsesWith(r);
      call->eraseFromParent();
    }
  }

  llvm::Function &gpu;
  const GirKernel &kernel;
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> b;
  llvm::Type *ptr = nullptr;
  llvm::Function *sim = nullptr;
  Value *thread = nullptr, *hookTable = nullptr, *threadNumber = nullptr, *blockNumber = nullptr;
  std::map<const llvm::Loop *, Value *> iterations;
  int site = 0;
};

class SimHooks final : public TargetHooks {
public:
  bool lanesAreThreads() const override { return true; }
  void markEntry(llvm::Function &entry, const GirKernel &) const override {
    entry.addFnAttr(llvm::Attribute::NoUnwind);
  }
  void defineMachine(llvm::Module &module, const GirKernel &kernel) const override {
    llvm::SmallVector<llvm::Function *> phases;
    for (llvm::Function &f : module)
      if (!f.isDeclaration() && !f.hasInternalLinkage())
        phases.push_back(&f);
    for (llvm::Function *f : phases)
      SimPhase(*f, kernel).run();
    for (llvm::Function &f : llvm::make_early_inc_range(module))
      if (f.isDeclaration() && f.use_empty())
        f.eraseFromParent();
  }
};

} // namespace

const Target &simHost() {
  static const Target host = [] {
    Target t{};
    t.name = t.cpu = "x86-64-v3";
    t.kind = TargetKind::Cpu;
    t.triple = "x86_64-unknown-linux-gnu";
    return t;
  }();
  return host;
}

std::unique_ptr<TargetHooks> makeSimHooks() { return std::make_unique<SimHooks>(); }

} // namespace fusec
