/* Selection for one instruction set; included after simd/functions.inc.h. */

#define NAN_RANK 0x7fffff00 /* above infinity, and not the least integer when flipped */
#define NO_RANK INT32_MIN

/* Integers in the order of the elements; zeros of both signs are equal. */
INLINE VI NAME(ranks)(VF x, int32_t flip) {
    const VI bits = (VI)(x + 0.0f), negative = bits >> 31;
    const VI ordered = bits ^ (negative & 0x7fffffff);
    return (VI)PICK(x != x, (VF)((VI){0} + NAN_RANK), (VF)ordered) ^ flip;
}

static void NAME(select_of_row)(const struct selection *s, const float *row, int32_t *places) {
    int32_t ranks[MOST_SELECTED];
    const int64_t last = s->count - 1;
    for (int64_t i = 0; i <= last; i++) ranks[i] = NO_RANK, places[i] = 0;
    for (int64_t x = 0; x < s->extent; x += LANES) {
        VF values = {0};
        const int64_t lanes = least(LANES, s->extent - x);
        if (lanes == LANES) values = LOAD(row + x);
        else memcpy(&values, row + x, (size_t)lanes * sizeof *row);
        const VI found = NAME(ranks)(values, s->flip);
        if (!NAME(any)(found > ranks[last])) continue;
        for (int64_t i = 0; i < lanes; i++) {
            const int32_t rank = found[i];
            if (rank <= ranks[last]) continue;
            int64_t at = last;
            for (; at > 0 && rank > ranks[at - 1]; at--)
                ranks[at] = ranks[at - 1], places[at] = places[at - 1];
            ranks[at] = rank, places[at] = (int32_t)(x + i);
        }
    }
}

static void NAME(select_of_positions)(const struct selection *s, const float *data,
                                      int64_t positions, int32_t *places) {
    VI ranks[MOST_SELECTED], found[MOST_SELECTED];
    const int64_t last = s->count - 1;
    for (int64_t i = 0; i <= last; i++) ranks[i] = (VI){0} + NO_RANK, found[i] = (VI){0};
    for (int64_t x = 0; x < s->extent; x++, data += s->inner) {
        VF values = {0};
        if (positions >= LANES) values = LOAD(data);
        else memcpy(&values, data, (size_t)positions * sizeof *data);
        VI rank = NAME(ranks)(values, s->flip), place = (VI){0} + (int32_t)x, moves = {0};
        if (!NAME(any)(rank > ranks[last])) continue;
        for (int64_t i = 0; i <= last; i++) {
            /* A lane that has found its place moves all that follow by one. */
            moves |= rank > ranks[i];
            const VF lower = PICK(moves, ranks[i], rank), after = PICK(moves, found[i], place);
            ranks[i] = (VI)PICK(moves, rank, ranks[i]);
            found[i] = (VI)PICK(moves, place, found[i]);
            rank = (VI)lower, place = (VI)after;
        }
    }
    memcpy(places, found, (size_t)s->count * sizeof *found);
}

const struct selection_functions JOIN(functions, selection, SUFFIX) = {
    LANES, NAME(select_of_row), NAME(select_of_positions)};

#undef NAN_RANK
#undef NO_RANK
