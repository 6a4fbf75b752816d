/* libfusert: loads a bundle made by fusec and runs it. C99, no dependencies.
 *
 *   fusert_model model;
 *   fusert_context context;
 *   fusert_load_file("m.bundle", NULL, &model);
 *   fusert_context_create(model, NULL, &context);
 *   fusert_buffer in = {x, sizeof x}, out = {y, sizeof y};
 *   fusert_run(context, &in, 1, &out, 1);
 *
 * A model is one program of a bundle, loaded for one device; it is immutable and may be used by any number of
 * threads. A context holds the memory of one run at a time; a call on a context that is in another call returns
 * FUSERT_BUSY. Handles are numbers: one that is stale, destroyed or of the wrong kind gives
 * FUSERT_INVALID_HANDLE. A context keeps its model alive: unloading a model first is fine.
 *
 * Every function is safe to call with null pointers (FUSERT_INVALID_ARGUMENT). No function throws, exits, prints,
 * installs signal handlers or leaves the floating point environment or the locale changed. Option structs begin
 * with struct_size = sizeof(the struct): older, smaller ones are taken too. Reserved members must be zero.
 */
#ifndef FUSEC_RUNTIME_H
#define FUSEC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define FUSERT_API
#else
#define FUSERT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FUSERT_VERSION 1u

typedef enum {
  FUSERT_OK = 0,
  FUSERT_INVALID_ARGUMENT = 1, /* null, wrong size, shape out of range, ... */
  FUSERT_INVALID_HANDLE = 2,
  FUSERT_NOT_READY = 3,   /* shapes of a model with symbolic dims are not set yet */
  FUSERT_BUSY = 4,        /* the context is in use by another call */
  FUSERT_BAD_BUNDLE = 5,  /* malformed, cut off or changed */
  FUSERT_UNSUPPORTED = 6, /* no program for this machine, or a newer format */
  FUSERT_IO_ERROR = 7,    /* the file cannot be read */
  FUSERT_NO_MEMORY = 8,
  /* An index or a value in the data is not allowed; the context stays usable. The runtime compares a size that depends
   * on data with its bound, and on CPUs tests indices (of Gather, Scatter and others), lengths of sequences, and values
   * that stand beside a declared shape, in branches and loops when these run. The kernels do not look: on GPUs another
   * index or length is clamped or dropped, and a value that contradicts a declared shape (k of TopK, the shape of
   * Reshape or Expand, the bounds of Slice) is ignored in favour of the shape. Callers that cannot trust such data
   * check it before a run. */
  FUSERT_OUT_OF_RANGE = 9,
  FUSERT_UNAVAILABLE = 10, /* the GPU's driver is missing or too old, or there is no such device */
  FUSERT_DEVICE_ERROR = 11,
  FUSERT_DEVICE_LOST = 12,  /* after an error that the device cannot recover from, for ever */
  FUSERT_CHECK_FAILED = 13, /* a sim target found a broken rule in a kernel */
  FUSERT_INTERNAL = 14,
  /* A public key was given, and the bundle's signature is missing or not by that key. */
  FUSERT_BAD_SIGNATURE = 15
} fusert_status;

/* "INVALID_ARGUMENT" and so on; never null. */
FUSERT_API const char *fusert_status_name(fusert_status status);
/* What the last call of this thread that failed had to say; "" before. Valid until the thread's next call. */
FUSERT_API const char *fusert_last_error(void);
/* FUSERT_VERSION of the library, and the newest bundle format that it reads. */
FUSERT_API uint32_t fusert_version(void);
FUSERT_API uint32_t fusert_format_version(void);

typedef uint64_t fusert_model; /* 0 is never valid */
typedef uint64_t fusert_context;

typedef enum {
  FUSERT_BOOL = 0, /* one byte, 0 or 1 */
  FUSERT_I8 = 1,
  FUSERT_I16 = 2,
  FUSERT_I32 = 3,
  FUSERT_I64 = 4,
  FUSERT_U8 = 5,
  FUSERT_U16 = 6,
  FUSERT_U32 = 7,
  FUSERT_U64 = 8,
  FUSERT_F16 = 9,
  FUSERT_BF16 = 10,
  FUSERT_F32 = 11,
  FUSERT_F64 = 12
} fusert_dtype;

/* ---- What the caller may bring ---- */

/* Host memory. `allocate` returns memory aligned to `alignment` (a power of two) or null. */
typedef struct {
  size_t struct_size;
  void *user;
  void *(*allocate)(void *user, size_t bytes, size_t alignment);
  void (*release)(void *user, void *memory, size_t bytes);
} fusert_allocator;

/* Calls task(argument, i) once for each i in 0 .. count-1, on any threads, in any order, at once or one after
 * another, and returns when all have returned. `width` is the number of tasks that it is worth to make. */
typedef struct {
  size_t struct_size;
  void *user;
  int32_t width;
  void (*parallel)(void *user, int32_t count, void (*task)(void *argument, int32_t index),
                   void *argument);
} fusert_thread_pool;

typedef enum { FUSERT_LOG_ERROR = 0, FUSERT_LOG_WARNING = 1, FUSERT_LOG_INFO = 2 } fusert_log_level;
typedef void (*fusert_log_fn)(void *user, fusert_log_level level, const char *message);

/* ---- Models ---- */

typedef enum {
  FUSERT_VERIFY_FULL = 0, /* all digests */
  FUSERT_VERIFY_CODE =
      1 /* all but those of the weights: faster, weights are paged in as they are used */
} fusert_verify;

typedef enum {
  FUSERT_WEIGHTS_MAP =
      0, /* the file stays mapped: shared between processes, must not be truncated */
  FUSERT_WEIGHTS_COPY = 1 /* independent of the file (or of the caller's memory) after loading */
} fusert_weights;

typedef struct {
  size_t struct_size;
  /* Name of a program in the bundle ("sm_90", "sim:sm_90"), or "cuda" or "hip": the best one for the vendor's GPU
   * number `device`; null: the best one for this CPU. Never another device than asked for. */
  const char *target;
  fusert_verify verify;
  fusert_weights weights;
  int32_t device; /* ordinal of the GPU */
  /* 1: checked and read for the info functions alone; no driver, device or memory for code is asked for, and no
   * context can be made. `target` null: of no program in particular. */
  int32_t info_only;
  fusert_log_fn log; /* may be null; called from the calling thread */
  void *log_user;
  /* Ed25519, 32 bytes: take only bundles signed by this key (with FUSERT_VERIFY_CODE the weights stay unchecked);
   * null: any. Read during the call only. */
  const uint8_t *public_key;
} fusert_load_options;

FUSERT_API fusert_status fusert_load_file(const char *path, const fusert_load_options *options,
                                          fusert_model *model);
/* `bytes` must stay valid and unchanged until the model and its contexts are gone (FUSERT_WEIGHTS_MAP), or only
 * during the call (FUSERT_WEIGHTS_COPY). Any alignment. */
FUSERT_API fusert_status fusert_load_memory(const void *bytes, size_t size,
                                            const fusert_load_options *options,
                                            fusert_model *model);
FUSERT_API fusert_status fusert_unload(fusert_model model);

/* Strings and arrays in the info structs live as long as the model. */
typedef struct {
  int64_t min,
      max; /* equal for a fixed dimension; what the symbols' ranges allow otherwise, INT64_MAX: open */
  const char *text; /* "128", "batch", "2*n + 1" */
} fusert_dim;

typedef struct {
  size_t struct_size;
  const char *name;
  fusert_dtype type;
  int32_t rank;
  const fusert_dim *dims; /* [rank] */
  /* 1: an input that a run may leave out, for it has a value of its own then, as the model's initialiser of the same
   * name says; else 0. */
  int32_t has_default;
  int32_t reserved;
} fusert_value_info;

typedef struct {
  size_t struct_size;
  const char *name;
  /* max INT64_MAX: open */
  int64_t min, opt, max, divisor;
  /* Of a size that the model computes from other sizes: how, "i64(ceil(f32(n)/2))", and the ONNX node that asked for
   * it; else null. */
  const char *definition, *node;
  /* Of a size that each run computes from its data: the most that it may be under the shapes set, "batch*80", where
   * `max` is for any shapes; else null. */
  const char *bound;
  /* Of one that tests the data, whose bound is 0: the ONNX node that needs it, and what, "indices". CPUs run such
   * tests. Else null. */
  const char *test_of, *test;
  /* [num_tuned]: the sizes that kernels are tuned for, ascending, of a symbol that shapes set; `opt` is the typical one
   * of them, and all that is known where an older fusec made the bundle. Else null and 0. */
  const int64_t *tuned;
  size_t num_tuned;
} fusert_symbol_info;

/* A name that the model has for sizes of its inputs, and which follows from the symbols. */
typedef struct {
  size_t struct_size;
  const char *name;
  const char *value; /* "80", "past + seq" */
} fusert_inferred_info;

/* What a node of the model asks of sizes: of symbols and of inferred ones. */
typedef struct {
  size_t struct_size;
  const char *rule;   /* "b = c", "n is a multiple of 2" */
  const char *node;   /* of the model */
  const char *op;     /* the node's operator */
  const char *reason; /* what must be so for it, in words */
  /* 1: shapes that fit the inputs' dimensions are tested for it when they are set; 0: these are as they are for it */
  int32_t tested;
  int32_t reserved;
} fusert_size_rule_info;

typedef struct {
  size_t struct_size;
  const char *name, *producer;
  /* Of the program loaded; "" where info_only named none, and its counts are 0. */
  const char *target;
  size_t inputs, outputs, symbols, kernels, steps;
  uint64_t weight_bytes, code_bytes;
  size_t programs; /* of the whole bundle */
  size_t inferred, size_rules;
  size_t
      computed; /* symbols behind the first `symbols`: programs make them of these, or runs of their data */
  size_t caches;
} fusert_model_info;

/* An input that an output continues: a run writes into its memory where fusert_share_caches() says so. */
typedef struct {
  size_t struct_size;
  size_t input, output;
  int32_t axis; /* of rows */
  /* 1: the output is the input and, behind it along `axis`, new rows; 0: it is the input with some elements written */
  int32_t grows;
} fusert_cache_info;

/* One program of the bundle, loaded or not. */
typedef struct {
  size_t struct_size;
  const char *target;
  size_t kernels, steps, images;
  uint64_t code_bytes;
  size_t variants; /* of all launches: one of each runs */
  /* The most bytes of shared memory that a launch asks of a GPU for a block, beyond what is static in the code; 0: none
   * does. */
  uint64_t dynamic_shared_bytes;
} fusert_program_info;

/* A kernel that a launch may run. Of its variants, which follow each other, the first runs whose guards hold under the
 * shapes set; the last has none. */
typedef struct {
  size_t struct_size;
  const char *step; /* the launch */
  const char *kernel;
  const char *guards; /* "batch*seq >= 16 and seq % 16 = 0"; "" for none */
} fusert_variant_info;

/* What a run needs beside the weights, in bytes. */
typedef struct {
  size_t struct_size;
  uint64_t workspace_bytes; /* intermediates: what fusert_workspace_bytes says of a context */
  uint64_t input_bytes, output_bytes;
} fusert_memory_info;

/* One form of a program's code: the first that the device loads is taken. */
typedef struct {
  size_t struct_size;
  const char *format; /* "elf", "cubin", "ptx", "code object" */
  uint64_t bytes;
  /* Lowest CUDA version of a driver that loads it, as cuDriverGetVersion counts (12040: 12.4); 0: any. */
  int32_t min_driver;
  int32_t reserved;
} fusert_image_info;

FUSERT_API fusert_status fusert_get_model_info(fusert_model model, fusert_model_info *info);
FUSERT_API fusert_status fusert_get_input_info(fusert_model model, size_t index,
                                               fusert_value_info *info);
FUSERT_API fusert_status fusert_get_output_info(fusert_model model, size_t index,
                                                fusert_value_info *info);
FUSERT_API fusert_status fusert_get_symbol_info(fusert_model model, size_t index,
                                                fusert_symbol_info *info);
FUSERT_API fusert_status fusert_get_inferred_info(fusert_model model, size_t index,
                                                  fusert_inferred_info *info);
FUSERT_API fusert_status fusert_get_size_rule_info(fusert_model model, size_t index,
                                                   fusert_size_rule_info *info);
FUSERT_API fusert_status fusert_get_cache_info(fusert_model model, size_t index,
                                               fusert_cache_info *info);
FUSERT_API fusert_status fusert_get_program_info(fusert_model model, size_t index,
                                                 fusert_program_info *info);
FUSERT_API fusert_status fusert_get_image_info(fusert_model model, size_t program, size_t index,
                                               fusert_image_info *info);
FUSERT_API fusert_status fusert_get_variant_info(fusert_model model, size_t program, size_t index,
                                                 fusert_variant_info *info);
/* Under these values of the symbols, in their order. */
FUSERT_API fusert_status fusert_get_memory_info(fusert_model model, size_t program,
                                                const int64_t *symbols, size_t count,
                                                fusert_memory_info *info);
FUSERT_API size_t fusert_dtype_bytes(fusert_dtype type); /* 0 when unknown */

/* ---- Contexts ---- */

typedef struct {
  size_t struct_size;
  int32_t threads;                /* 0: as many as the process may use; 1: only the caller's */
  int32_t counters;               /* 1: a sim target counts, a CPU takes the time of each kernel */
  const fusert_thread_pool *pool; /* null: threads of our own. Copied; used during runs only. */
  const fusert_allocator *memory; /* null: malloc. Copied; must outlive the context. */
  /* GPU: CUstream or hipStream_t to launch on, of the device's primary context and not under capture into a graph.
   * Null: one of our own, which the drivers' null stream does not wait for. A run on it with device memory comes behind
   * all that the default stream (the legacy one, which null is to the drivers) has been given before, and every run on
   * it has ended when the call returns. What other streams do to the buffers, a thread's own default stream too, the
   * caller has to wait for. CU_STREAM_LEGACY, (void *)1, is the default stream itself. */
  void *stream;
  /* A sim target: 0: blocks and threads run in order; else: in an order drawn from this number. */
  uint64_t sim_seed;
} fusert_context_options;

FUSERT_API fusert_status fusert_context_create(fusert_model model,
                                               const fusert_context_options *options,
                                               fusert_context *context);
/* FUSERT_BUSY while a run is under way. On a GPU it waits for the context's runs, by an event of its own: a caller's
 * stream may be destroyed before. */
FUSERT_API fusert_status fusert_context_destroy(fusert_context context);

typedef struct {
  int32_t rank;
  const int64_t *dims;
} fusert_shape;

/* Shapes of all inputs, in order; those with a default value have fixed ones. Needed once where a dimension is
 * symbolic; allowed again at any time. A failed call leaves the shapes as they were. Shapes that a node of the model
 * cannot take are refused with its name, the sizes, and the dimensions of inputs that they come from. */
FUSERT_API fusert_status fusert_set_shapes(fusert_context context, const fusert_shape *shapes,
                                           size_t count);
/* The same by the symbols' values, in the order of the model's symbols; computed ones are not given. */
FUSERT_API fusert_status fusert_set_symbols(fusert_context context, const int64_t *values,
                                            size_t count);

/* Lets the input and the output of every cache of the model (fusert_get_cache_info) be one memory: a run then writes
 * what is new, and copies nothing. `rows`: for how many rows along `axis` a cache that grows has room; caches that stay
 * as long as they are take any number over 0. 0: no memory is shared, which is so until this is called. Holds for all
 * shapes set before and behind it; those that need more rows are refused (FUSERT_INVALID_ARGUMENT), as is a model
 * without caches, and nothing has changed then.
 * Shapes stay what they are, but a cache that grows has a buffer of the size that its input has with `rows` in place of
 * its length: rows lie where they would in such a tensor, what is behind the last one is not read. So the buffer that
 * an output is in after one run is the input of the next one. In a run the output is given the input's buffer or none.
 * A buffer of the context's own is one for both, and is kept where shapes that are set leave its size as it is. */
FUSERT_API fusert_status fusert_share_caches(fusert_context context, int64_t rows);

/* Shape under the symbols set: *rank in: capacity of `dims`, out: the rank. */
FUSERT_API fusert_status fusert_get_input_shape(fusert_context context, size_t index, int64_t *dims,
                                                int32_t *rank);
/* A size that depends on data is what the last run has computed; before a run under the shapes set, and behind one that
 * failed, it is the largest that it may be. */
FUSERT_API fusert_status fusert_get_output_shape(fusert_context context, size_t index,
                                                 int64_t *dims, int32_t *rank);

/* Bytes of device memory for intermediates under the shapes set. By default the context allocates them. */
FUSERT_API fusert_status fusert_workspace_bytes(fusert_context context, size_t *bytes);
/* Use the caller's memory (aligned to 256) until shapes are set again. */
FUSERT_API fusert_status fusert_set_workspace(fusert_context context, void *memory, size_t bytes);

/* Buffers of the context's own, made at the first call: host memory, filled or read by the caller. They begin with
 * pages, large ones with huge pages, unless they come from a caller's allocator. Each lasts, with what it holds, until
 * shapes are set that give its tensor another size. That of an input with a default value, whose size is fixed, holds
 * this until the caller writes something else. That of an output whose size depends on data is there behind a run that
 * was given no other, with the size that this run has computed, and lasts until the next run: ask behind each one. */
FUSERT_API fusert_status fusert_input_buffer(fusert_context context, size_t index, void **data,
                                             size_t *bytes);
FUSERT_API fusert_status fusert_output_buffer(fusert_context context, size_t index, void **data,
                                              size_t *bytes);

/* Memory that begins with a page (4096 bytes) is the fastest; it should begin with a cache line (64 bytes) at least.
 * Kernels that move more than they compute take up to twice as long where an output begins 64 to 256 bytes further on
 * in its page than an input does, as memory from malloc may: loads wait for stores whose addresses end alike. */
typedef struct {
  /* null: the context's own buffer, or no elements. Of an input with a default value: its own buffer once
   * fusert_input_buffer() has given it to the caller, who may have written to it; until then the default value. A
   * buffer given here counts for this run alone and comes before both. */
  void *data;
  /* Exactly the tensor's size under the shapes set, of a shared cache with its room; of an output whose size depends on
   * data the largest that it may be, or more: see fusert_get_output_shape(). */
  size_t bytes;
} fusert_buffer;

/* Runs once. `inputs` and `outputs` have one entry each in the model's order; null (with count 0): the context's
 * own buffers. An output may overlap neither an input nor another output, but for what
 * fusert_share_caches() says. On a GPU, pointers may lead to host memory,
 * pinned or not, which is copied, or to memory of the model's device that begins at a multiple of 16 bytes (the driver
 * is asked whenever a pointer is another than in the run before); managed memory counts as the device's. Memory of
 * another device or of another context than the device's primary one is refused. With a caller's stream and device
 * memory only, the call returns when all is enqueued, otherwise when the outputs are written. A model with sizes that
 * depend on data is waited for wherever one becomes known, and memory for what has it is allocated where there is not
 * enough from earlier runs; FUSERT_OUT_OF_RANGE where the data gives a size that is larger than the model allows, or on
 * a CPU an index outside the axis that it goes along: the context stays usable. */
FUSERT_API fusert_status fusert_run(fusert_context context, const fusert_buffer *inputs,
                                    size_t input_count, const fusert_buffer *outputs,
                                    size_t output_count);

/* What the context's runs have counted so far, as one JSON object: {"kernels":[{"name":...,...}]}. Valid until
 * the next call on the context. Needs fusert_context_options.counters. */
FUSERT_API fusert_status fusert_counters_json(fusert_context context, const char **json);

/* ---- What this machine can do ---- */

typedef struct {
  size_t struct_size;
  const char
      *target; /* a CPU's ("x86-64-v4"), or "cuda" or "sm_90" for the first GPU; null: this CPU */
  int32_t threads;       /* of a CPU; 0: as many as the process may use */
  int32_t repetitions;   /* 0: 5 */
  int64_t largest_bytes; /* of memory to measure, all threads together; 0: 1 GiB */
} fusert_calibrate_options;

/* One figure, of each repetition: the lowest, the median and the highest. */
typedef struct {
  size_t struct_size;
  const char *device; /* what was measured, in the words of its vendor; valid during the call */
  /* Seconds, of kernels that do nothing, through the executor that runs models:
   *   "launch", "phase"                a launch of one block, a phase of one block, on the calling thread;
   *   "cold_launch"                    such a launch whose code and data are no longer in the core's own caches;
   *   "shared_launch", "shared_phase"  of a block for each thread, which wait for each other: until all have it,
   *                                    and are done;
   *   "woken_launch"                   a shared launch that finds the other threads asleep;
   *   "cycle"                          of the calling thread's core, beside no work of its own.
   * Bytes a second of all threads together, each with memory of its own:
   *   "read", "copy"                   a copy counts both ways;
   *   "stream"                         a copy whose stores go past the caches;
   *   "rows"                           a copy along four rows of a page at once;
   *   "product"                        a read beside two multiply-adds for each vector.
   * Of a GPU, `threads` being its multiprocessors: seconds of a "launch" in a stream, of a "block_barrier" of 256
   * threads and of a "grid_barrier" of one block on each multiprocessor; bytes a second that are read from the
   * multiprocessors' "shared" memory and copied in what half of the last cache ("l2") holds, `bytes` being what one of
   * these memories has in all; "read" and "copy" as above. */
  const char *what;
  int32_t threads;
  int32_t reserved;
  int64_t
      bytes; /* of all threads together that are read or copied again and again; 0 for seconds */
  double lowest, median, highest;
} fusert_figure;
typedef void (*fusert_figure_fn)(void *user, const fusert_figure *figure);

/* Measures launches, phases and bandwidths for one thread and for all, and calls `take` for each figure: some seconds
 * of work. FUSERT_UNSUPPORTED for targets that it cannot measure. */
FUSERT_API fusert_status fusert_calibrate(const fusert_calibrate_options *options,
                                          fusert_figure_fn take, void *user);

#ifdef __cplusplus
}
#endif
#endif
