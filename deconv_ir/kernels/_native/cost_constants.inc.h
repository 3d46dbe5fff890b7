/* The constants of the cost model, COST(name, value): cycles, unless a comment says otherwise.
 *
 * Fitted on two cores of a Zen 3 (AVX2); `make fit-costs` measures a machine and proposes others
 * for it.  All are positive.
 */

/* Micro-kernels */
COST(FMA_LATENCY, 4.0)         /* of a multiply-add */
COST(BROADCAST_CYCLES, 0.5)    /* of broadcasting a weight */
COST(LOAD_CYCLES, 1.3)         /* of loading a vector, at two multiply-adds a cycle */
COST(SHORTS_FACTOR, 1.7)       /* factor of multiply-adds of pairs of 16 bits, a product and a sum; on a Zen 4 */
COST(CALL_CYCLES, 20.0)        /* of the calls for one block of rows */
COST(BLOCK_CYCLES, 8.0)        /* of one micro-kernel without its taps */
COST(SUM_CYCLES, 2.0)          /* of storing a vector of sums */
/* Bytes of weights read per cycle, by memory level */
COST(FROM_MEMORY, 3.6)
COST(FROM_MEMORY_AND_THIRD_LEVEL, 6.0)
COST(FROM_THIRD_LEVEL, 12.0)
COST(FROM_SECOND_LEVEL, 24.0)

/* Threads without tiles wait for the last one, and some thread is always delayed: more tiles are
 * better.  Both constants are shares of a tile's cycles. */
COST(WAITING_SHARE, 0.75)
COST(DISTURBED_TILES, 0.06)

/* Direct sums */
COST(DIRECT_TILE, 300.0)       /* fixed, of a tile */
COST(FAR_DATA, 0.5)            /* share by which a tile is slower if its data exceed its cache by
                                * the size of the cache */
COST(COPIED_ROW, 12.0)         /* of a row of data that is copied */
COST(COPIED_ELEMENT, 0.35)
COST(PANEL_ROW, 2.0)           /* of a row that is copied on into a compact panel */
COST(PANEL_ELEMENT, 0.3)
COST(PANEL_RESULT_ROW, 12.0)   /* of a row of results, for each sub-convolution */
COST(PANEL_RESULT, 1.8)
COST(TAKEN_WEIGHT, 0.3)        /* of a weight of a tile that skips taps */
COST(RESULT_ROW, 30.0)         /* of a row that is interleaved */
COST(RESULT, 0.5)              /* of an element of two interleaved sub-convolutions */
COST(SCATTERED_RESULT, 1.2)    /* of more than two */
COST(DEPTHWISE_CHANNEL, 120.0) /* fixed, of a channel of a depthwise layer */
COST(DEPTHWISE_VECTOR, 2.0)    /* of a vector of its sums */
COST(DEPTHWISE_TAP, 0.25)      /* of a tap that is added to such a vector */
COST(DEPTHWISE_BYTE, 0.012)    /* of a byte of that tap's data: most loads cross cache lines */
COST(DEPTHWISE_FAR, 2.0)       /* factor of the sums if data exceed the first-level cache */
COST(PARTED_ROW, 4.0)          /* of a row of sums that is copied to the output */
COST(VECTORS_POSITION, 4.0)    /* of a position that is transposed, for vectors of channels */
COST(VECTORS_TAP, 0.6)         /* of a tap that is added to such a vector */
COST(OUTPUTS_PIECE, 100.0)     /* of OUT_POSITIONS positions, for vectors of output channels */
COST(OUTPUTS_FACTOR, 1.03)     /* factor of their multiply-adds */
COST(OUTPUTS_RESULT, 0.5)      /* of a result of these */

/* Winograd */
COST(WINO_TILE, 500.0)         /* fixed, of a job */
COST(PRODUCT_BLOCK, 34.0)      /* of a micro-kernel of one product */
COST(TRANSFORMED_WEIGHT, 0.5)  /* of a code's weight at a point, transformed for a tile; on a Zen 4 */
COST(SCATTERED_WEIGHT, 1.0)    /* the same if rows of sub-convolutions alternate, or with one point */
COST(PANEL_BYTES_LEVEL2, 28.0) /* bytes of a panel a cycle that overflow half of the second level */
COST(PANEL_BYTES_SHARED, 7.0)  /* bytes a cycle that come from the caches of other cores */
/* For vectors of 8 lanes and two multiply-adds a cycle: */
COST(OUTPUT_ELEMENT, 1.25)     /* of an element of the results */
COST(OUTPUT_LINE, 35.0)        /* of a line that is written, and of rows written together */
COST(SCATTERED_LINE, 100.0)    /* of a line that is read before its pieces are stored */
COST(LAST_AXIS_VALUE, 0.33)    /* of a value that is transformed along one axis, */
COST(TWO_AXES_VALUE, 0.5)      /* or two: lines pass through the second level between them */
/* With one point, data are copied in rows: */
COST(FLAT_VALUE, 0.55)         /* of a value */
COST(FLAT_ROW, 10.0)           /* of a row that is not whole */
COST(FLAT_BLOCK, 7.0)          /* of a line of the panel */
/* With several points, data are transformed in vectors of channels: */
COST(POINT_VALUE, 0.8)         /* of a value at a point */
COST(PART_VALUE, 0.72)         /* of the same if the taps are in several parts */
COST(AXIS_VALUE, 0.26)         /* of the same for a transform along another axis */
COST(GATHERED_VALUE, 0.43)     /* of an element that is gathered */
COST(WINDOW_ROW, 2.6)          /* of a row of windows */
/* A line of the panel, by the ratio of the panel's size to the second-level cache: */
COST(NEAR_LINE, 1.7)
COST(FAR_LINE, 3.5)
COST(FARTHEST_LINE, 7.0)
/* Factors that make the two models comparable: */
COST(VOLUME_FACTOR, 1.15)      /* three axes: lines are too many and too short for the first level */
COST(WINO_GAIN, 0.11)          /* share saved: direct sums are modelled with all data in cache */
COST(ONE_POINT_FACTOR, 0.92)   /* one tap per sub-convolution, except with full-width AVX-512 */
COST(ONE_TAP_FACTOR, 1.05)     /* one tap in all: direct sums are one product as well */
