// Functions, parameters and phases. Expressions, statements and operations are in the files beside this one.
#include "Codegen/Emitter.h"

#include "Gir/Passes.h"
#include "Gir/Walk.h"
#include "Support/Diag.h"
#include "fusec/bundle_format.h"

namespace fusec {

using llvm::Value;

static_assert(kSharedAlignment == FUSEC_SHARED_ALIGN &&
              kMostSharedAlignment == FUSEC_MOST_SHARED_ALIGN);

Emitter::Emitter(const GirKernel &k, const KernelCode &code, std::span<const MicroKernel> kernels,
                 const TargetHooks &hooks, llvm::Module &module)
    : kernel(k), code(code), kernels(kernels), hooks(hooks), module(module),
      context(module.getContext()), b(context, llvm::InstSimplifyFolder(module.getDataLayout())),
      threads(hooks.lanesAreThreads()), width(threads ? 1 : k.lanes), symbols(k.usedSymbols()) {
  setRanges(kernel);
  const std::vector<Scalar> &nodes = kernel.body.nodes;
  readsMemory.resize(nodes.size());
  for (size_t id = 0; id < nodes.size(); ++id) {
    const Scalar &s = nodes[id];
    bool reads = (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) &&
                 kernel.buffers[s.index].level != MemLevel::Register;
    for (NodeId a : s.args)
      reads = reads || readsMemory[a];
    readsMemory[id] = reads;
  }
  notePrefetches();
  noteStreamed();
}

void Emitter::problem(const std::string &what) {
  std::string where = "kernel '" + kernel.name + "'";
  if (!kernel.onnxNodes.empty())
    where += " (node '" + kernel.onnxNodes.front() + "')";
  errors.push_back({Diag::UnsupportedOp, where, what});
}

Status Emitter::run() {
  if (!kernel.counters.empty() && !code.gridBarrier)
    problem("phases that wait for counters need an entry for all of them, which this target has "
            "not");
  if (threads) {
    for (size_t p = 0; p < kernel.phases.size(); ++p)
      emitGpuPhase(p);
    if (code.gridBarrier)
      emitGridKernel();
  } else {
    emitCpuKernel();
  }
  if (!errors.empty())
    return std::move(errors);
  return success();
}

/// Creates the function with a parameter for each Global buffer and each dim and positions the builder in it.
/// `noalias` holds: buffers of different tensors do not overlap (bundle_format.h). Across a barrier of the grid it is
/// not said of buffers that are written: LLVM would take it that the barrier leaves them as they are.
llvm::Function *Emitter::beginFunction(const std::string &name,
                                       llvm::GlobalValue::LinkageTypes linkage, llvm::Type *result,
                                       Extra extra) {
  const int params = kernel.numParams();
  llvm::Type *i64 = b.getInt64Ty();
  std::vector<llvm::Type *> types(params, llvm::PointerType::get(context, threads ? 1 : 0));
  types.insert(types.end(), symbols.size() + (kernel.rounds ? 1 : 0), i64);
  if (extra == Extra::ScratchAndBlock)
    types.insert(types.end(), {b.getPtrTy(), i64});
  if (extra == Extra::Grid)
    types.insert(types.end(), {i64, llvm::PointerType::get(context, 1)});
  function =
      llvm::Function::Create(llvm::FunctionType::get(result, types, false), linkage, name, module);
  hooks.markEntry(*function, kernel);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));

  buffers.assign(kernel.buffers.size(), nullptr);
  for (int i = 0; i < params; ++i) {
    llvm::Argument *arg = function->getArg(i);
    arg->setName(kernel.buffers[i].name);
    if (extra != Extra::Grid || !kernel.buffers[i].written)
      arg->addAttr(llvm::Attribute::NoAlias);
    if (!kernel.buffers[i].written)
      arg->addAttr(llvm::Attribute::ReadOnly);
    buffers[i] = arg;
  }
  dims.clear();
  for (size_t d = 0; d < symbols.size(); ++d) {
    llvm::Argument *arg = function->getArg(params + d);
    arg->setName(kernel.symbols[symbols[d]].name);
    dims.push_back(arg);
  }
  vars.assign(kernel.vars.size(), {});
  if (kernel.rounds) {
    llvm::Argument *round = function->getArg(params + symbols.size());
    round->setName("round");
    vars[kernel.rounds->var] = {round};
  }
  if (kernel.resident >= 0)
    vars[kernel.resident] = {b.getInt64(0)};
  cache.assign(kernel.body.nodes.size(), {});
  epoch = 0;
  inLane = inUnit = hasStreamed = false;
  mask = guard = keepUnless = nullptr;
  return function;
}

/// Register buffers become allocas (all promoted where their indices are constant), Shared ones addresses.
void Emitter::declareLocals() {
  Value *shared = nullptr;
  if (threads && hooks.readsInFlight() > 0) {
    auto *type = llvm::ArrayType::get(b.getInt64Ty(), kWidestAccess / 8);
    auto *nowhere = new llvm::GlobalVariable(
        module, type, true, llvm::GlobalValue::InternalLinkage, llvm::Constant::getNullValue(type),
        function->getName() + "_nowhere", nullptr, llvm::GlobalValue::NotThreadLocal, 1);
    nowhere->setAlignment(llvm::Align(kWidestAccess));
    safePlace = nowhere;
  }
  if (!threads) {
    shared = function->getArg(function->arg_size() - 2);
    static_cast<llvm::Argument *>(shared)->addAttr(llvm::Attribute::NoAlias);
    safePlace = b.CreateAlloca(llvm::ArrayType::get(b.getInt64Ty(), width), nullptr, "nowhere");
  } else if (code.sharedBytes > 0) {
    // An external array without elements stands for what the launch gives.
    const bool dynamic = !code.dynamicShared.empty();
    auto *type = llvm::ArrayType::get(b.getInt8Ty(), dynamic ? 0 : code.sharedBytes);
    auto *global = new llvm::GlobalVariable(
        module, type, false,
        dynamic ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
        dynamic ? nullptr : llvm::UndefValue::get(type), function->getName() + "_shared", nullptr,
        llvm::GlobalValue::NotThreadLocal, 3);
    global->setAlignment(llvm::Align(code.sharedAlign));
    shared = global;
  }
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const GirBuffer &buffer = kernel.buffers[i];
    if (buffer.level == MemLevel::Shared) {
      buffers[i] = b.CreateConstGEP1_64(b.getInt8Ty(), shared, buffer.offsetBytes, buffer.name);
    } else if (buffer.level == MemLevel::Register) {
      llvm::Type *element = storageType(buffer.type);
      if (buffer.perLane && width > 1)
        element = llvm::FixedVectorType::get(element, width);
      auto *type = llvm::ArrayType::get(element, numElements(buffer.shape).constValue());
      buffers[i] = b.CreateAlloca(type, nullptr, buffer.name);
    }
  }
}

/// An alloca outside all loops, which is what promotion looks for.
llvm::AllocaInst *Emitter::entryAlloca(llvm::Type *type, const std::string &name) {
  llvm::BasicBlock &entry = function->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  return at.CreateAlloca(type, nullptr, name);
}

/// Decodes the block number (the last block variable runs fastest) and emits the statements.
void Emitter::emitPhaseBody(const Phase &phase, Value *block) {
  for (size_t i = phase.blocks.size(); i-- > 0;) {
    Value *trip = dimValue(phase.blocks[i].trip), *digit = block;
    if (i > 0) {
      // A GPU grid has fewer than 2^31 blocks, so 32-bit divisions do there, which are several times cheaper.
      if (threads) {
        Value *narrow = b.CreateTrunc(block, b.getInt32Ty()),
              *by = b.CreateTrunc(trip, b.getInt32Ty());
        digit = b.CreateZExt(b.CreateURem(narrow, by), b.getInt64Ty());
        block = b.CreateZExt(b.CreateUDiv(narrow, by), b.getInt64Ty());
      } else {
        digit = b.CreateURem(block, trip);
        block = b.CreateUDiv(block, trip);
      }
    }
    vars[phase.blocks[i].var] = {digit};
  }
  emit(phase.body);
}

/// i32 symbol(const fusec_kernel_args *args, i32 phase, i64 block): fetches the arguments and calls the phase's own
/// function, whose parameters can say that they do not alias.
void Emitter::emitCpuKernel() {
  llvm::Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty(), *ptr = b.getPtrTy();
  std::vector<llvm::Function *> phases;
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    phases.push_back(beginFunction(code.symbol + ".p" + std::to_string(p),
                                   llvm::GlobalValue::InternalLinkage, i32,
                                   Extra::ScratchAndBlock));
    declareLocals();
    emitPhaseBody(kernel.phases[p], function->getArg(function->arg_size() - 1));
    if (hasStreamed)
      hooks.completeStreamed(b);
    b.CreateRet(b.getInt32(0));
  }
  auto *entry = llvm::Function::Create(llvm::FunctionType::get(i32, {ptr, i32, i64}, false),
                                       llvm::GlobalValue::ExternalLinkage, code.symbol, module);
  hooks.markEntry(*entry, kernel);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", entry));
  auto field = [&](unsigned index) {
    return b.CreateLoad(ptr, b.CreateConstGEP1_64(ptr, entry->getArg(0), index));
  };
  std::vector<Value *> args;
  Value *bufferTable = field(0), *dimTable = field(1), *scratch = field(2);
  for (int i = 0; i < kernel.numParams(); ++i)
    args.push_back(b.CreateLoad(ptr, b.CreateConstGEP1_64(ptr, bufferTable, i)));
  for (size_t d = 0; d < symbols.size() + (kernel.rounds ? 1 : 0); ++d)
    args.push_back(b.CreateLoad(i64, b.CreateConstGEP1_64(i64, dimTable, d)));
  args.push_back(scratch);
  args.push_back(entry->getArg(2));
  auto *unknown = llvm::BasicBlock::Create(context, "unknown", entry);
  auto *choice = b.CreateSwitch(entry->getArg(1), unknown, phases.size());
  for (size_t p = 0; p < phases.size(); ++p) {
    auto *target = llvm::BasicBlock::Create(context, "phase", entry);
    choice->addCase(b.getInt32(p), target);
    b.SetInsertPoint(target);
    b.CreateRet(b.CreateCall(phases[p], args));
  }
  b.SetInsertPoint(unknown);
  b.CreateUnreachable();
}

void Emitter::emitGpuPhase(size_t p) {
  beginFunction(code.symbol + "_p" + std::to_string(p), llvm::GlobalValue::ExternalLinkage,
                b.getVoidTy(), Extra::None);
  numberThreads();
  Value *block = b.CreateCall(machine("fusec.gpu.block", b.getInt32Ty(), {}));
  declareLocals();
  emitPhaseBody(kernel.phases[p], b.CreateZExt(block, b.getInt64Ty(), "block"));
  b.CreateRetVoid();
}

/// Some of its blocks' values, which do not outlive the block, lie in shared memory.
static bool usesShared(const GirKernel &kernel, const Phase &phase) {
  bool uses = false;
  forEachStmt(phase.body, [&](const Stmt &s) {
    uses |= writesBuffer(s) && kernel.buffers[s.buffer].level == MemLevel::Shared;
  });
  return uses;
}

/// void symbol_grid(buffers..., dims..., i64 blocks, ptr words): all phases, run by as many blocks as the device
/// holds at once; each takes every blocks-th block of a phase, and the grid's barrier stands between phases and between
/// rounds. So it cannot deadlock: every block that waits has its place, and all of them come to the same barriers. In
/// front of a phase that waits for counters stands none (Gir/VerifyCounters.cpp says why that cannot deadlock either);
/// the block that ends last leaves them 0.
void Emitter::emitGridKernel() {
  beginFunction(code.symbol + "_grid", llvm::GlobalValue::ExternalLinkage, b.getVoidTy(),
                Extra::Grid);
  llvm::Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  Value *blocks = function->getArg(function->arg_size() - 2);
  gridWords = function->getArg(function->arg_size() - 1);
  blocks->setName("blocks");
  gridWords->setName("words");
  llvm::Type *ptr = gridWords->getType();
  DimExpr counters(0);
  for (const GirCounters &c : kernel.counters)
    counters = counters + c.count;
  if (rangeOfExtent(counters, kernel.symbols).max >= int64_t{FUSEC_GRID_COUNTERS})
    problem("a kernel has at most " + std::to_string(FUSEC_GRID_COUNTERS) + " counters");
  if (kernel.resident >= 0) {
    Value *all = b.getTrue();
    int64_t widest = 0;
    for (const Phase &phase : kernel.phases)
      if (const DimExpr size = gridSize(phase); size.isConst())
        widest = std::max(widest, size.constValue());
    if (widest > 0)
      hooks.leaveRoomFor(*function, widest);
    for (const Phase &phase : kernel.phases)
      all = b.CreateAnd(all, b.CreateICmpSLE(dimValue(gridSize(phase)), blocks));
    vars[kernel.resident] = {b.CreateZExt(all, i64, "resident")};
  }
  numberThreads();
  Value *own = b.CreateZExt(b.CreateCall(machine("fusec.gpu.block", i32, {})), i64, "block");
  declareLocals();
  llvm::Function *gridSync = machine("fusec.gpu.sync.grid", b.getVoidTy(), {ptr, i32}),
                 *blockSync = machine("fusec.gpu.sync.block", b.getVoidTy(), {});
  Value *round = nullptr; // its place, in the loop over rounds
  llvm::BasicBlock *roundsBegin = nullptr, *roundsDone = nullptr;
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    const Phase &phase = kernel.phases[p];
    if (p > 0 && !phase.waiting)
      b.CreateCall(gridSync, {gridWords, b.CreateTrunc(blocks, i32)});
    if (kernel.rounds && p == kernel.rounds->first) {
      round = entryAlloca(i64, "round.next");
      b.CreateStore(b.getInt64(0), round);
      roundsBegin = llvm::BasicBlock::Create(context, "rounds", function);
      roundsDone = llvm::BasicBlock::Create(context, "done", function);
      b.CreateCondBr(b.CreateICmpSGT(dimValue(kernel.rounds->count), b.getInt64(0)), roundsBegin,
                     roundsDone);
      b.SetInsertPoint(roundsBegin);
      vars[kernel.rounds->var] = {b.CreateLoad(i64, round, "round")};
    }
    // What was computed for one phase does not dominate the next one.
    cache.assign(kernel.body.nodes.size(), {});
    auto *loop = llvm::BasicBlock::Create(context, "blocks", function),
         *body = llvm::BasicBlock::Create(context, "block", function),
         *after = llvm::BasicBlock::Create(context, "after", function);
    Value *total = dimValue(gridSize(phase)), *counter = entryAlloca(i64, "next");
    b.CreateStore(own, counter);
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    Value *block = b.CreateLoad(i64, counter);
    b.CreateCondBr(b.CreateICmpSLT(block, total), body, after);
    b.SetInsertPoint(body);
    if (!kernel.counters.empty())
      b.CreateCall(machine("fusec.gpu.sync.begin", b.getVoidTy(), {i32, i64}),
                   {b.getInt32(static_cast<uint32_t>(p)), block});
    emitPhaseBody(phase, block);
    Value *next = b.CreateNSWAdd(block, blocks);
    b.CreateStore(next, counter);
    if (usesShared(kernel, phase)) {
      // The next block takes the memory over; what comes behind the last one, where no barrier of the grid stands
      // between.
      if (p + 1 == kernel.phases.size() || !kernel.phases[p + 1].waiting) {
        auto *takeOver = llvm::BasicBlock::Create(context, "takeover", function);
        b.CreateCondBr(b.CreateICmpSLT(next, total), takeOver, after);
        b.SetInsertPoint(takeOver);
      }
      b.CreateCall(blockSync);
    }
    b.CreateBr(loop);
    b.SetInsertPoint(after);
    cache.assign(kernel.body.nodes.size(), {});
    if (kernel.rounds && p + 1 == kernel.rounds->last)
      endRounds(round, roundsBegin, roundsDone, gridSync, {gridWords, b.CreateTrunc(blocks, i32)});
  }
  if (!kernel.counters.empty())
    b.CreateCall(machine("fusec.gpu.sync.leave", b.getVoidTy(), {ptr, i32, i64}),
                 {gridWords, b.CreateTrunc(blocks, i32), dimValue(counters)});
  gridWords = nullptr;
  b.CreateRetVoid();
}

/// Another round where there is one left, behind a barrier. All blocks go through the same number of them.
void Emitter::endRounds(Value *round, llvm::BasicBlock *begin, llvm::BasicBlock *done,
                        llvm::Function *gridSync, llvm::ArrayRef<Value *> barrier) {
  auto *again = llvm::BasicBlock::Create(context, "again", function);
  Value *next = b.CreateNSWAdd(b.CreateLoad(b.getInt64Ty(), round), b.getInt64(1));
  b.CreateStore(next, round);
  b.CreateCondBr(b.CreateICmpSLT(next, dimValue(kernel.rounds->count)), again, done);
  b.SetInsertPoint(again);
  b.CreateCall(gridSync, barrier);
  b.CreateBr(begin);
  b.SetInsertPoint(done);
  cache.assign(kernel.body.nodes.size(), {});
}

void Emitter::numberThreads() {
  llvm::Type *i64 = b.getInt64Ty();
  Value *thread = b.CreateCall(machine("fusec.gpu.thread", b.getInt32Ty(), {}), {}, "thread");
  Value *lanes = b.getInt32(kernel.lanes);
  bool oneUnit = kernel.units == 1;
  threadLane = b.CreateZExt(oneUnit ? thread : b.CreateURem(thread, lanes), i64, "lane");
  threadUnit = oneUnit ? b.getInt64(0) : b.CreateZExt(b.CreateUDiv(thread, lanes), i64, "unit");
}

llvm::Function *Emitter::machine(const char *name, llvm::Type *result,
                                 llvm::ArrayRef<llvm::Type *> params) {
  auto callee = module.getOrInsertFunction(name, llvm::FunctionType::get(result, params, false));
  auto *f = llvm::cast<llvm::Function>(callee.getCallee());
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr(llvm::Attribute::WillReturn);
  // Communication between threads must not move into or out of divergent code.
  if (llvm::StringRef(name).contains("sync") || llvm::StringRef(name).contains("shuffle") ||
      llvm::StringRef(name).contains("lane0"))
    f->addFnAttr(llvm::Attribute::Convergent);
  else
    f->setDoesNotAccessMemory();
  return f;
}

llvm::Type *Emitter::valueType(DType t) {
  switch (t) {
  case DType::Bool: return b.getInt1Ty();
  case DType::F16:
  case DType::BF16:
  case DType::F32: return b.getFloatTy();
  case DType::F64: return b.getDoubleTy();
  default: return b.getIntNTy(sizeInBytes(t) * 8);
  }
}

llvm::Type *Emitter::storageType(DType t) {
  return t == DType::Bool ? b.getInt8Ty() : valueType(t);
}

llvm::Type *Emitter::withShapeOf(llvm::Type *element, llvm::Type *like) {
  auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

llvm::Constant *Emitter::constantLike(llvm::Type *type, double v) {
  return llvm::ConstantFP::get(type, v);
}

llvm::Constant *Emitter::integerLike(llvm::Type *type, int64_t v) {
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(v), true);
}

Value *Emitter::intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<Value *> args) {
  return b.CreateIntrinsic(id, {args[0]->getType()}, args);
}

} // namespace fusec
