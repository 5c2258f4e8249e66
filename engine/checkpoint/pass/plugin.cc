// The pass: runs last on each module, and puts a check before each store that needs one.
// mve-cc loads it into clang; for opt it is called mve-checkpoint.
#include "engine/checkpoint/pass/bodies.h"
#include "engine/checkpoint/pass/emit.h"
#include "engine/checkpoint/pass/known.h"
#include "engine/checkpoint/pass/leave.h"
#include "engine/checkpoint/pass/loops.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

static bool wants(const Function &f)
{
	return !f.isDeclaration() && !f.hasFnAttribute(Attribute::Naked) &&
	       !f.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) &&
	       !f.hasAvailableExternallyLinkage();
}

static void function(Function &f, bool gated, const Quiet &quiet, Count &count)
{
	Gates gates;

	frames_move(f, count);
	loops_prepare(f);
	Sites sites = sites_find(f, count);

	leave_stack(sites, count);
	emit_atomics(sites);
	if (!options().checks)
		sites.erase(std::remove_if(sites.begin(), sites.end(), [](const Site &s) {
			return !isa<CallBase>(s.at) || isa<IntrinsicInst>(s.at); }), sites.end());
	if (!options().log) {
		loops_range(f, sites, quiet, count);
		leave_checked(f, sites, quiet, count);
	}
	if (gated)
		loops_gates(f, sites, quiet, gates);
	for (const Cluster &c : join(f, sites, quiet, count))
		emit(c, gated, gates, count);
	editions(f, gates, quiet, count);
	if (options().checks && !options().log)
		outside_thunks(f);
	if (verifyFunction(f, &errs()))
		report_fatal_error(Twine("mve-checkpoint: broken: ") + f.getName());
}

static bool is_named(const Module &m, StringRef name)
{
	const Function *f = m.getFunction(name);

	return f && !f->use_empty();
}

// The runtime tells by the first whether anything was built, and the linker by the second
// whether it was built with regions of the runtime's size; and by a third the runtime whether
// the program opens checkpoints of its own.
static void mark(Module &m)
{
	Type *byte = Type::getInt8Ty(m.getContext());
	std::string size = "mve_checkpoint_region_" + std::to_string(options().region());
	auto *region = m.getOrInsertGlobal(size, byte);
	auto *built = new GlobalVariable(m, byte, true, GlobalValue::WeakODRLinkage,
					 ConstantInt::get(byte, 1), "mve_checkpoint_built");

	built->setVisibility(GlobalValue::HiddenVisibility);
	if (is_named(m, "mve_checkpoint_open"))
		appendToUsed(m, {new GlobalVariable(m, byte, true, GlobalValue::WeakODRLinkage,
						    ConstantInt::get(byte, 1),
						    "mve_checkpoint_opens")});
	auto *use = new GlobalVariable(m, region->getType(), false, GlobalValue::PrivateLinkage,
				       region, "mve_checkpoint_use");
	appendToUsed(m, {built, use});
}

namespace {
struct Checkpoint : PassInfoMixin<Checkpoint> {
	PreservedAnalyses run(Module &m, ModuleAnalysisManager &)
	{
		Count count;

		known_rename(m);
		Quiet quiet = quiet_find(m);
		std::vector<Function *> functions;
		for (Function &f : m)
			if (wants(f))
				functions.push_back(&f);
		std::vector<Bodies> bodies = bodies_make(m, functions);
		DenseSet<const Function *> checked;
		for (const Bodies &b : bodies)
			checked.insert(b.checked);
		for (Function *f : functions)
			function(*f, !checked.count(f), quiet, count);
		bodies_lead(m, bodies, count);
		if (options().marked)
			mark(m);
		count.print(m);
		return PreservedAnalyses::none();
	}
	static bool isRequired() { return true; }
};
}

static bool by_name(StringRef name, ModulePassManager &passes,
		    ArrayRef<PassBuilder::PipelineElement>)
{
	if (name != "mve-checkpoint")
		return false;
	passes.addPass(Checkpoint());
	return true;
}

static void register_pass(PassBuilder &builder)
{
	builder.registerPipelineParsingCallback(by_name);
	builder.registerOptimizerLastEPCallback([](ModulePassManager &passes, OptimizationLevel) {
		passes.addPass(Checkpoint());
	});
}

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "mve-checkpoint", "1", register_pass};
}
