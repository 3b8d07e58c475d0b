/*
 * A small block pool, written for Spin: the same rules, the same states and the same checks as small_model.py beside
 * this file, for the comparison of speed. What the operations mean is said there.
 *
 * It is not the specification of kvproof. Give the scope on the command line, for example
 *     spin -a -DBLOCKS=4 -DREQUESTS=2 -DHASHES=2 -DLONGEST=4 small_model.pml
 * and -DPLANTED for the planted bug. Each operation is one d_step, so that a stored state is the state between two
 * operations; the process has a single control state, and entries beyond a length are kept at zero.
 */

#ifndef BLOCKS
#define BLOCKS   4
#define REQUESTS 2
#define HASHES   2
#define LONGEST  4
#endif

#if BLOCKS == 2
byte queue[BLOCKS] = { 0, 1 };
#elif BLOCKS == 3
byte queue[BLOCKS] = { 0, 1, 2 };
#elif BLOCKS == 4
byte queue[BLOCKS] = { 0, 1, 2, 3 };
#elif BLOCKS == 5
byte queue[BLOCKS] = { 0, 1, 2, 3, 4 };
#else
#error "BLOCKS must be 2, 3, 4 or 5"
#endif
#if REQUESTS < 1 || REQUESTS > 3 || HASHES < 1 || HASHES > 3
#error "REQUESTS and HASHES must be 1, 2 or 3"
#endif

byte waiting = BLOCKS;                  /* free blocks in queue, the next to be taken first */
byte hash[BLOCKS];                      /* 0: none */
byte table[REQUESTS * LONGEST];
byte length[REQUESTS];

hidden byte block, position, queued, holders, named, i, j;      /* of one operation; no part of the state */

#define ENTRY(request, position) table[(request) * LONGEST + (position)]

/* Guards of a d_step are expressions, so what would be a loop is written out. */
#define NAMES(request, wanted, position) (length[request] > position && ENTRY(request, position) == wanted)
#if LONGEST == 1
#define HOLDS(request, wanted) NAMES(request, wanted, 0)
#elif LONGEST == 2
#define HOLDS(request, wanted) (NAMES(request, wanted, 0) || NAMES(request, wanted, 1))
#elif LONGEST == 3
#define HOLDS(request, wanted) (NAMES(request, wanted, 0) || NAMES(request, wanted, 1) || NAMES(request, wanted, 2))
#elif LONGEST == 4
#define HOLDS(request, wanted) (NAMES(request, wanted, 0) || NAMES(request, wanted, 1) || \
                                NAMES(request, wanted, 2) || NAMES(request, wanted, 3))
#elif LONGEST == 5
#define HOLDS(request, wanted) (NAMES(request, wanted, 0) || NAMES(request, wanted, 1) || \
                                NAMES(request, wanted, 2) || NAMES(request, wanted, 3) || NAMES(request, wanted, 4))
#else
#error "LONGEST must be 1, 2, 3, 4 or 5"
#endif
#if REQUESTS == 1
#define HELD(wanted) HOLDS(0, wanted)
#elif REQUESTS == 2
#define HELD(wanted) (HOLDS(0, wanted) || HOLDS(1, wanted))
#else
#define HELD(wanted) (HOLDS(0, wanted) || HOLDS(1, wanted) || HOLDS(2, wanted))
#endif

/* Into holders: how many tables name the block. A table that names one twice breaks S2. */
inline count_holders(wanted) {
    holders = 0;
    for (i : 0 .. REQUESTS - 1) {
        named = 0;
        for (j : 0 .. length[i] - 1) {
            named = named + (ENTRY(i, j) == wanted)
        }
        assert(named <= 1);
        holders = holders + named
    }
}

/* S1 and S2 of small_model.py; S3 is asserted where a block is taken. */
inline check() {
    for (block : 0 .. BLOCKS - 1) {
        queued = 0;
        for (i : 0 .. waiting - 1) {
            queued = queued + (queue[i] == block)
        }
        count_holders(block);
        assert(queued == (holders == 0))
    }
    skip                                /* a d_step must not end in a loop */
}

inline remove_at(position) {
    waiting--;
    for (i : position .. waiting - 1) {
        queue[i] = queue[i + 1]
    }
    queue[waiting] = 0
}

inline allocate(request) {
    d_step {
        waiting > 0 && length[request] < LONGEST ->
        block = queue[0];
        remove_at(0);
        hash[block] = 0;
        ENTRY(request, length[request]) = block;
        length[request]++;
        assert(hash[block] == 0);
        check()
    }
}

inline hit(request, wanted) {
    d_step {
        hash[wanted] != 0 && length[request] < LONGEST && !HOLDS(request, wanted) ->
        position = 0;
        do
        :: position < waiting && queue[position] != wanted -> position++
        :: else -> break
        od;
        if
        :: position < waiting -> remove_at(position)
        :: else -> skip
        fi;
        ENTRY(request, length[request]) = wanted;
        length[request]++;
        check()
    }
}

inline identify(wanted, value) {
    d_step {
        hash[wanted] == 0 && (HELD(wanted)) ->
        hash[wanted] = value;
        check()
    }
}

inline evict(wanted) {
    d_step {
        hash[wanted] != 0 ->
        hash[wanted] = 0;
        check()
    }
}

#ifdef PLANTED
#define UNUSED(others) true
#else
#define UNUSED(others) (holders == others)
#endif

/* The table is given up from its end: blocks without a hash to the head of the queue, the others to its tail. */
inline release(request) {
    d_step {
        length[request] > 0 ->
        position = 0;
        do
        :: position < length[request] ->
            block = ENTRY(request, position);
            position++;
            count_holders(block);
            if
            :: UNUSED(1) && hash[block] == 0 ->
                for (i : 1 .. waiting) {
                    queue[waiting + 1 - i] = queue[waiting - i]
                }
                queue[0] = block;
                waiting++
            :: else -> skip
            fi
        :: else -> break
        od;
        do
        :: length[request] > 0 ->
            length[request]--;
            block = ENTRY(request, length[request]);
            ENTRY(request, length[request]) = 0;
            count_holders(block);
            if
            :: UNUSED(0) && hash[block] != 0 ->
                queue[waiting] = block;
                waiting++
            :: else -> skip
            fi
        :: else -> break
        od;
        check()
    }
}

active proctype pool() {
end:
    do
#define OF_PAIR(request, wanted) :: hit(request, wanted)
#if BLOCKS == 2
#define HITS(request) OF_PAIR(request, 0) OF_PAIR(request, 1)
#elif BLOCKS == 3
#define HITS(request) OF_PAIR(request, 0) OF_PAIR(request, 1) OF_PAIR(request, 2)
#elif BLOCKS == 4
#define HITS(request) OF_PAIR(request, 0) OF_PAIR(request, 1) OF_PAIR(request, 2) OF_PAIR(request, 3)
#elif BLOCKS == 5
#define HITS(request) OF_PAIR(request, 0) OF_PAIR(request, 1) OF_PAIR(request, 2) OF_PAIR(request, 3) OF_PAIR(request, 4)
#endif
#define OF_REQUEST(request) :: allocate(request) HITS(request) :: release(request)
    OF_REQUEST(0)
#if REQUESTS > 1
    OF_REQUEST(1)
#endif
#if REQUESTS > 2
    OF_REQUEST(2)
#endif
#if HASHES == 1
#define IDENTIFY(wanted) :: identify(wanted, 1)
#elif HASHES == 2
#define IDENTIFY(wanted) :: identify(wanted, 1) :: identify(wanted, 2)
#elif HASHES == 3
#define IDENTIFY(wanted) :: identify(wanted, 1) :: identify(wanted, 2) :: identify(wanted, 3)
#endif
#define OF_BLOCK(wanted) IDENTIFY(wanted) :: evict(wanted)
    OF_BLOCK(0)
    OF_BLOCK(1)
#if BLOCKS > 2
    OF_BLOCK(2)
#endif
#if BLOCKS > 3
    OF_BLOCK(3)
#endif
#if BLOCKS > 4
    OF_BLOCK(4)
#endif
    od
}
