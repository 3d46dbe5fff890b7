/* The pool of memory for large results: a Block is reused after its last owner is freed.
 *
 * The system finds, clears and maps a fresh page before it is written to.  For results that are
 * too large for the allocator to reuse, that takes as long as computing them.  The interpreter
 * lock guards the pool; kernels/runtime/memory.py allocates from it.
 */
#include "module.h"

#include <stdlib.h>

#define KEPT_BLOCKS 64
#define SMALL_PAGE 4096
/* Smaller blocks would waste much of their last huge page. */
#define HUGE_BLOCK ((int64_t)8 << 20)

static int64_t kept_bytes = (int64_t)192 << 20; /* maximum of the free blocks */
static int64_t all_bytes = INT64_MAX;           /* maximum of free blocks and blocks in use */
static int64_t used_bytes;                      /* of blocks in use */

/* The free blocks: empty slots first, then blocks from the oldest to the newest. */
static struct {
    void *memory;
    int64_t bytes;
} kept[KEPT_BLOCKS];

static void *take_out(int slot) {
    void *memory = kept[slot].memory;
    for (; slot > 0; slot--) kept[slot] = kept[slot - 1];
    kept[0].memory = NULL;
    kept[0].bytes = 0;
    return memory;
}

typedef struct {
    PyObject_HEAD
    void *memory;
    int64_t bytes;  /* requested */
    int64_t allocated;
} Block;

/* Free the oldest blocks until at most `most_kept` bytes remain. */
static void trim(int64_t most_kept) {
    int64_t total = 0;
    for (int i = 0; i < KEPT_BLOCKS; i++) total += kept[i].bytes;
    for (int i = 0; i < KEPT_BLOCKS && total > most_kept; i++) {
        total -= kept[i].bytes;
        free(take_out(i));
    }
}

/* Take the smallest block that fits without wasting half of its size; among equal ones the newest,
 * which is in cache. */
static void *take(int64_t bytes, int64_t *allocated) {
    int best = -1;
    for (int i = 0; i < KEPT_BLOCKS; i++)
        if (kept[i].memory && kept[i].bytes >= bytes && kept[i].bytes / 2 <= bytes &&
            (best < 0 || kept[i].bytes <= kept[best].bytes))
            best = i;
    if (best < 0) {
        *allocated = round_up(bytes, bytes >= HUGE_BLOCK ? HUGE_PAGE : SMALL_PAGE);
        trim(all_bytes - used_bytes - *allocated);
        if (bytes >= HUGE_BLOCK) return allocate_huge(*allocated);
        void *memory = NULL;
        return posix_memalign(&memory, SMALL_PAGE, (size_t)*allocated) ? NULL : memory;
    }
    *allocated = kept[best].bytes;
    return take_out(best);
}

/* Return a block to the pool, within its bounds. */
static void give(void *memory, int64_t allocated) {
    used_bytes -= allocated;
    const int64_t most_kept = least(kept_bytes, all_bytes - used_bytes);
    if (allocated > most_kept) {
        free(memory);
        return;
    }
    trim(most_kept - allocated);
    free(take_out(0));
    for (int i = 0; i + 1 < KEPT_BLOCKS; i++) kept[i] = kept[i + 1];
    kept[KEPT_BLOCKS - 1].memory = memory;
    kept[KEPT_BLOCKS - 1].bytes = allocated;
}

void keep_blocks(int64_t most_kept, int64_t most_in_all) {
    kept_bytes = most_kept;
    all_bytes = most_in_all;
    for (int i = 0; i < KEPT_BLOCKS; i++) free(take_out(KEPT_BLOCKS - 1));
}

static PyObject *block_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    long long bytes;
    if (!PyArg_ParseTuple(arguments, "L", &bytes)) return NULL;
    if (bytes < 1 || bytes > PY_SSIZE_T_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "no such size");
        return NULL;
    }
    Block *self = (Block *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->bytes = bytes;
    self->memory = take(bytes, &self->allocated);
    if (!self->memory) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    used_bytes += self->allocated;
    return (PyObject *)self;
}

static void block_dealloc(PyObject *object) {
    Block *self = (Block *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->memory) give(self->memory, self->allocated);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static int block_buffer(PyObject *object, Py_buffer *view, int flags) {
    Block *self = (Block *)object;
    return PyBuffer_FillInfo(view, object, self->memory, (Py_ssize_t)self->bytes, 0, flags);
}

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "Block(bytes): memory from a pool, to which its last reference returns it."},
    {Py_tp_new, block_new},
    {Py_tp_dealloc, block_dealloc},
    {Py_bf_getbuffer, block_buffer},
    {0, NULL},
};

PyType_Spec block_spec = {
    .name = "deconv_ir.kernels._compiled.Block",
    .basicsize = sizeof(Block),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = block_slots,
};
