/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Posting against falling asleep (ORN-RNG-5, 6, 20).
 *
 * Each side's stores sit in its own store buffer, which drains in order and at any moment;
 * a fence waits until it is empty; a load reads memory. Indices wrap at 16, the notify word
 * at 8, which stand for 32 and 31 bits, so the few posts here cross both wraps. Proved: the
 * device never ends up asleep in front of a ring that is not empty, with no doorbell to
 * come.
 *
 * HOST_FENCE and DEV_FENCE (1 or 0) enable the fences. FORGETS 1: a device that, about to
 * sleep, forgets the doorbells that came before.
 */
#define INDEX	16
#define WORD	8
#define ALWAYS	8	/* bit of the notify word */
#define START	5
#define POSTS	5

byte host_index = START;
byte notify = ALWAYS;
byte doorbell;		/* rung and not yet seen; merged ones count once */
bool posted;		/* the host is done */

mtype = { HOST_INDEX, NOTIFY, DOORBELL };

chan host_sb = [3] of { mtype, byte };
chan dev_sb = [2] of { mtype, byte };

#define FENCE(on, sb)	if :: on -> empty(sb) :: !(on) fi

inline drain(sb)
{
end:	do
	:: atomic { sb ? HOST_INDEX(value) -> host_index = value }
	:: atomic { sb ? NOTIFY(value) -> notify = value }
	:: atomic { sb ? DOORBELL(value) -> doorbell = 1 }
	od
}

proctype host_drain() { byte value; drain(host_sb) }
proctype dev_drain() { byte value; drain(dev_sb) }

/* One or two entries at a time; the doorbell is a store after the index. */
proctype host()
{
	byte old = START, new, n, left = POSTS;

	do
	:: left > 0 ->
		if
		:: new = (old + 1) % INDEX
		:: new = (old + 2) % INDEX
		fi;
		host_sb ! HOST_INDEX(new);
		FENCE(HOST_FENCE, host_sb);
		n = notify;
		if
		:: n >= ALWAYS || ((n + WORD - old % WORD) % WORD) < ((new + INDEX - old) % INDEX) ->
			host_sb ! DOORBELL(0)
		:: else
		fi;
		old = new;
		left--
	:: else -> break
	od;
	posted = true
}

proctype device()
{
	byte cons = START, seen;

	do
	:: seen = host_index;
		if
		:: seen != cons -> cons = seen		/* work */
		:: else ->				/* try to sleep */
			dev_sb ! NOTIFY(cons % WORD);
			FENCE(DEV_FENCE, dev_sb);
			seen = host_index;
			if
			:: seen != cons
			:: else ->
				if
				:: FORGETS -> doorbell = 0
				:: !FORGETS
				fi;
				if
				:: doorbell -> doorbell = 0
				:: posted && empty(host_sb) && empty(dev_sb) && !doorbell ->
					assert(cons == host_index);
					break
				fi
			fi
		fi
	od
}

init
{
	atomic { run host(); run device(); run host_drain(); run dev_drain() }
}
