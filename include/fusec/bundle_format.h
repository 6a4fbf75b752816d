/* The bundle file and the kernel ABI: the contract between the compiler (writer) and the runtime (reader).
 *
 * Stand-alone C99, no other dependency. Both sides include it. All integers are little-endian, all offsets
 * are from the start of the file, all structs below have no padding.
 *
 *   offset 0        fusec_bundle_header            (128 bytes)
 *   offset 128      fusec_bundle_signature         (96 bytes), only where header.signature_kind is not 0
 *   then            fusec_bundle_section[count]    (64 bytes each), in file order
 *   then            the sections, each at a multiple of FUSEC_SECTION_ALIGN
 *   end of file     = end of the last section
 *
 * No byte is outside a section, the header, the signature or the table, except the padding in front of a section,
 * which is zero and shorter than FUSEC_SECTION_ALIGN. Sections neither overlap nor nest.
 *
 * Sections, in this order:
 *   MANIFEST   one; a FlatBuffer of type Manifest (lib/Bundle/Manifest.fbs), identifier "FUSM". For each target it
 *              also tells what the compiler decided (Program.decisions), which no reader needs in order to run it
 *   CODE       one an image (a target has one or more, see Manifest.Image.section)
 *   WEIGHTS    none or one; constants, each at a multiple of FUSEC_WEIGHT_ALIGN, gaps zero
 *   DIGESTS    one where there is WEIGHTS: the BLAKE2b-256 of each FUSEC_WEIGHT_CHUNK bytes of WEIGHTS, the
 *              last chunk being shorter
 *
 * Digests are BLAKE2b with 32 bytes of output and no key. Those of MANIFEST, CODE and DIGESTS cover all bytes
 * of the section; that of WEIGHTS equals that of DIGESTS, so that the header protects the weights and each
 * chunk can be checked alone. header.digest covers header (with digest as zeros) and section table.
 *
 * The signature is Ed25519 (RFC 8032, pure) of the 128 bytes of the header, digest included: by way of the digests it
 * covers the whole file, and who holds the public key checks it before reading anything else. A reader without a key
 * checks it against the public key in the file, so that no changed byte goes unseen; that proves no origin.
 *
 * What stays loadable. A runtime loads and runs every bundle with a `version` of at most its FUSEC_FORMAT_VERSION and a
 * `min_runtime` of at most its FUSEC_RUNTIME_VERSION, from 1 on, for CPUs and GPUs, and gives the results of the
 * runtime that was there when the bundle was made; others it refuses and names both versions. So
 *   - a change of a struct of this file, of the order of sections, of a digest or of the signature raises
 *     FUSEC_FORMAT_VERSION, and the reader keeps the older form beside the new one;
 *   - tables of the manifest get new fields at their end alone, whose default means what there was before; no field,
 *     no number of an enum (element types, operations of sizes, kinds of steps, tensors, images) is removed, reused or
 *     given another meaning;
 *   - what an older runtime would not understand, or would run wrongly, raises FUSEC_RUNTIME_VERSION, and bundles that
 *     use it have that as `min_runtime`;
 *   - the kernel ABI below only grows: hooks and codes at the end, further parameters for kernels that a new field of
 *     the manifest marks.
 * Runtime versions: 2 knows inputs with a default value (Value.weight), 3 rules of sizes (Manifest.inferred and rules),
 * sizes that a program computes (Manifest.definitions), sizes that depend on data (Manifest.data_sizes and steps of the
 * kind Size) and caches (Manifest.caches), 4 plans for some sizes (steps of the kind Where), 5 such plans that test
 * the data each (steps of the kind Size in both lists of a Where, of one with DataSize.test_of); bundles
 * without any of these need 1.
 * Format versions: 2 knows shared memory of GPUs that launches give, and that is aligned to more than
 * FUSEC_SHARED_ALIGN (Kernel.dynamic_shared and shared_align); all else is as in 1.
 * Not promised: that a newer compiler writes the same bytes, that an older runtime loads a newer bundle, that images of
 * simulated GPUs (sim:...) run under another version than their own, and how long a GPU's driver loads an image.
 * models/bundles/ holds a bundle of each format version, which a test loads and runs.
 */
#ifndef FUSEC_BUNDLE_FORMAT_H
#define FUSEC_BUNDLE_FORMAT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEC_BUNDLE_MAGIC "FUSECBDL" /* 8 bytes, no terminator */
#define FUSEC_FORMAT_VERSION 2u
#define FUSEC_RUNTIME_VERSION 5u     /* what `min_runtime` is compared with */
#define FUSEC_ENDIAN_TAG 0x01020304u /* reads differently on a big-endian machine */
#define FUSEC_SECTION_ALIGN 4096u
#define FUSEC_WEIGHT_ALIGN 64u
#define FUSEC_WEIGHT_CHUNK (4u << 20)
#define FUSEC_DIGEST_BYTES 32u
#define FUSEC_MAX_SECTIONS 1024u
#define FUSEC_MAX_RANK 64u

typedef struct {
  uint8_t magic[8];        /* FUSEC_BUNDLE_MAGIC */
  uint32_t version;        /* FUSEC_FORMAT_VERSION */
  uint32_t min_runtime;    /* lowest FUSEC_RUNTIME_VERSION that can run the file */
  uint32_t endian_tag;     /* FUSEC_ENDIAN_TAG */
  uint32_t pointer_bytes;  /* 8 */
  uint32_t section_count;  /* 1..FUSEC_MAX_SECTIONS */
  uint32_t section_size;   /* sizeof(fusec_bundle_section) */
  uint64_t file_bytes;     /* size of the whole file */
  uint32_t signature_kind; /* FUSEC_SIGNATURE_NONE or FUSEC_SIGNATURE_ED25519 */
  uint8_t reserved[52];    /* zero */
  uint8_t digest[32];      /* of header and section table, see above */
} fusec_bundle_header;     /* 128 bytes */

enum { /* fusec_bundle_header.signature_kind */
       FUSEC_SIGNATURE_NONE = 0,
       FUSEC_SIGNATURE_ED25519 = 1,
};

typedef struct {
  uint8_t public_key[32];
  uint8_t signature[64];  /* of the header */
} fusec_bundle_signature; /* 96 bytes */

enum { /* fusec_bundle_section.kind */
       FUSEC_SECTION_MANIFEST = 1,
       FUSEC_SECTION_CODE = 2,
       FUSEC_SECTION_WEIGHTS = 3,
       FUSEC_SECTION_DIGESTS = 4,
};

typedef struct {
  uint32_t kind;
  uint32_t reserved0; /* zero */
  uint64_t offset;    /* multiple of FUSEC_SECTION_ALIGN */
  uint64_t size;      /* bytes, not zero */
  uint64_t reserved1; /* zero */
  uint8_t digest[32];
} fusec_bundle_section; /* 64 bytes */

/* ---- Kernel ABI -------------------------------------------------------------------------------------------
 *
 * A kernel has P buffers (parameters), D dims (the model symbols that it uses, ascending) and F phases. Phase f
 * has a grid: a number of blocks, an expression over the symbols, 0 included (nothing runs). All blocks of a
 * phase may run in any order and at once; a phase starts when the one before has ended (a device-wide barrier).
 * Phases rounds_first to rounds_last (exclusive) run `rounds` times over, and where a kernel has such phases, every
 * entry takes the number of the round, from 0 on, as a further dim (in other phases it may be any number).
 * Buffers of different tensors do not overlap. A buffer is aligned to its element size at least (on a GPU to
 * FUSEC_GPU_BUFFER_ALIGN); runtime-owned memory and weights to 64 bytes. An empty tensor's memory is never touched.
 *
 * CPU: one exported function a kernel, of type fusec_cpu_kernel. It is called once for each phase and block.
 * `scratch` points to Kernel.scratch_bytes of memory of the calling worker (aligned to 64, contents undefined at
 * the start of every call). Returns FUSEC_KERNEL_OK or another of the codes. The floating point environment is:
 * round to nearest, no flush to zero, all exceptions masked; vector upper halves are clean at entry and exit.
 *
 * The image of a CPU or sim target is an x86-64 ELF shared object: ET_DYN, a System V hash table (DT_HASH),
 * loadable segments read-only or read-execute, no writable segment; no relocations, needed libraries, undefined
 * symbols, initialisers, interpreter, thread-local storage. `ld.lld -shared -z rodynamic -z norelro
 * -z noexecstack --hash-style=sysv -Bsymbolic --no-undefined -s` makes it.
 *
 * NVIDIA, AMD: one entry for each phase, named after the kernel's symbol with "_p0", "_p1", ... appended (a
 * kernel with one phase too). Parameters: one 64-bit device pointer a buffer, then one int64 a dim. The grid is
 * one-dimensional (block number = x); a block has Kernel.units * Kernel.lanes threads in x, thread t being lane
 * t % lanes of unit t / lanes. Shared memory is static in the image, or a launch gives it: Kernel.dynamic_shared has
 * its bytes for the entry of each phase, and the entry for all phases gets Kernel.scratch_bytes. On NVIDIA a function
 * takes more than 48 KiB after cuFuncSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES). A kernel reports
 * nothing.
 * With Kernel.grid_barrier there is an entry for all phases too, named with "_grid" appended: its blocks wait for
 * each other, so all of them must be on the device at once (a cooperative launch), any number from 1 to the largest
 * grid of a phase. Two more parameters follow the dims: that number as int64, and a pointer to FUSEC_GRID_BYTES of
 * device memory, 0 before the first launch, which launches that may overlap do not share: the barrier's word, the
 * number of blocks that have ended, and counters, each at the beginning of FUSEC_GRID_WORD_BYTES. A launch leaves
 * behind what the next one can begin with.
 *
 * sim: one entry for each phase, named as on a GPU, of type fusec_sim_kernel, called for each thread of each
 * block. In the entry for all phases the number of blocks stands behind the dims. Before each access to global or
 * shared memory it calls `access`; other hooks stand for the machine's instructions. Hooks do not return when a
 * check fails.
 */
#define FUSEC_GPU_BUFFER_ALIGN 16u
#define FUSEC_SHARED_ALIGN 128u       /* of what a block shares on a GPU and on sim, */
#define FUSEC_MOST_SHARED_ALIGN 1024u /* or what Kernel.shared_align says, up to this */
#define FUSEC_GRID_WORD_BYTES                                                                      \
  32u /* a sector: blocks that wait for different counters do not meet */
#define FUSEC_GRID_COUNTERS 2046u
#define FUSEC_GRID_BYTES ((2u + FUSEC_GRID_COUNTERS) * FUSEC_GRID_WORD_BYTES)

enum { /* What a kernel returns. fusec's return FUSEC_KERNEL_OK alone, for the host tests indices and sizes of the data
          (steps of the kind Size); a runtime knows the others for kernels that any writer of bundles makes. */
       FUSEC_KERNEL_OK = 0,
       FUSEC_KERNEL_INDEX_OUT_OF_RANGE =
           1,                      /* a run-time index or size in the data is outside its bounds */
       FUSEC_KERNEL_BAD_VALUE = 2, /* another run-time value that the operator forbids */
};

typedef struct {
  void *const *buffers; /* [P] */
  const int64_t *dims;  /* [D] values */
  void *scratch;
} fusec_kernel_args;

typedef int32_t (*fusec_cpu_kernel)(const fusec_kernel_args *args, int32_t phase, int64_t block);

typedef struct fusec_sim_thread fusec_sim_thread;

enum { /* flags of fusec_sim_hooks.access */
       FUSEC_SIM_READ = 1,
       FUSEC_SIM_WRITE = 2, /* READ | WRITE: an update in place */
};

/* `site` numbers the instruction inside one kernel phase: 0, 1, 2, ... each access, sync and shuffle in the
 * program text has its own. What the lanes of one unit do at one site in the same `iteration`, a number for those of
 * all loops around the access, counts as one transaction. */
typedef struct {
  uint32_t struct_size; /* bytes of this struct; newer members come at the end */
  uint32_t reserved;
  /* Access of `bytes` bytes at `address`. `param`: index of the global buffer, or -1 for shared memory (address
   * between shared and shared + scratch_bytes, or the phase's dynamic_shared where there is one). */
  void (*access)(fusec_sim_thread *t, const void *address, int32_t bytes, int32_t flags,
                 int32_t param, int64_t iteration, int32_t site);
  /* Barrier of all threads of the block. */
  void (*block_sync)(fusec_sim_thread *t, int32_t site);
  /* Barrier of all lanes of the unit (a memory fence among them). */
  void (*unit_sync)(fusec_sim_thread *t, int32_t site);
  /* `bits` as given by lane (own lane xor `lane_mask`); all lanes of the unit take part. */
  uint64_t (*shuffle_xor)(fusec_sim_thread *t, uint64_t bits, int32_t lane_mask, int32_t site);
  /* Ends the run with a status other than FUSEC_KERNEL_OK. */
  void (*fail)(fusec_sim_thread *t, int32_t status, int32_t site);
  /* Barrier of all threads of all blocks, in the entry for all phases. */
  void (*grid_sync)(fusec_sim_thread *t, int32_t site);
  /* The thread begins block `block` of phase `phase`, in an entry for all phases with counters. */
  void (*begin_block)(fusec_sim_thread *t, int32_t phase, int64_t block, int32_t site);
  /* Counter `counter` rises by 1, once for all threads of the block. */
  void (*signal)(fusec_sim_thread *t, int64_t counter, int32_t site);
  /* Until each of the counters first to last is `count` at least. */
  void (*wait)(fusec_sim_thread *t, int64_t first, int64_t last, int64_t count, int32_t site);
} fusec_sim_hooks;

struct fusec_sim_thread {
  const fusec_sim_hooks *hooks;
  void *const *buffers; /* [P] */
  const int64_t *dims;  /* [D] */
  void *
      shared; /* the block's shared memory, at a multiple of Kernel.shared_align, contents undefined */
  int64_t block;  /* 0 .. grid-1 */
  int32_t thread; /* 0 .. units*lanes-1 */
  int32_t reserved;
  int64_t
      flops; /* the kernel adds the floating-point operations that this thread did; fused multiply-add: 2 */
};

typedef void (*fusec_sim_kernel)(fusec_sim_thread *t);

#ifdef __cplusplus
}
#endif
#endif
