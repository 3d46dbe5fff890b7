/* Blocks of rows of the packed filter, whose codes are unpacked some channels at a time. */
#include "winograd/winograd.h"

/* Bytes of transformed weights of a block of rows: these and the unpacked ones stay near. */
#define BLOCK_BYTES ((int64_t)32 << 10)

int64_t wino_subs(const struct packing *d) { return d->subs[0].count * d->subs[1].count * d->subs[2].count; }

/* Taps of all sub-convolutions before one. */
static int64_t taps_before(const struct kernel *k, int64_t sub) {
    return k->packing.sub_start[sub] / (k->problem.channels_in * k->problem.channels_out);
}
int64_t wino_taps_of(const struct kernel *k, int64_t sub) { return taps_before(k, sub + 1) - taps_before(k, sub); }

static int64_t most_taps(const struct kernel *k) {
    int64_t taps = 1;
    for (int64_t sub = 0; sub < wino_subs(&k->packing); sub++) taps = most(taps, wino_taps_of(k, sub));
    return taps;
}

/* An even number: blocks of terms of four bits begin with whole bytes. */
int64_t wino_unpacked_channels(const struct kernel *k) {
    const int64_t fit = BLOCK_BYTES / (most(16, most_taps(k)) * MAX_ROWS * (int64_t)sizeof(float));
    return least(round_up(k->problem.channels_in, 2), most(fit / 2 * 2, 2));
}

int64_t wino_block_size(const struct kernel *k) {
    return round_up(wino_unpacked_channels(k) * most_taps(k) * MAX_ROWS + 2 * MOST_LANES, MOST_LANES);
}

int64_t wino_packed_at(const struct kernel *k, int64_t group, int64_t sub, int64_t block) {
    const struct packing *d = &k->packing;
    return group * d->group_size + d->sub_start[sub] +
           wino_taps_of(k, sub) * k->problem.channels_in * packing_channel(d, block);
}

const float *wino_block_weights(const struct kernel *k, int64_t group, int64_t sub, int64_t block, int64_t first,
                                int64_t count, float *room) {
    const int64_t packed = wino_packed_at(k, group, sub, block), taps = wino_taps_of(k, sub);
    if (!k->codes) return (const float *)k->packed + packed + first * taps * packing_rows(&k->packing, block);
    unpack_codes(k, packed, group, block, taps, first * taps, (first + count) * taps, room);
    return room;
}
