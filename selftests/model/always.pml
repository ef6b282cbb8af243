/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events that wait for room against a host that makes room (ORN-EQ-11, ORN-RNG-21, 22, 31).
 *
 * Store buffers and fences as in post_sleep.pml. A ring of one entry carries EVENTS events;
 * the device holds events without room, sets ALWAYS, and reads the ring again at a
 * doorbell. It reads the arm word whenever it has worked, also after it cleared ALWAYS.
 * Proved: the host gets every event and never ends up waiting for one that will not come.
 *
 * HOST_FENCE and DEV_FENCE (1 or 0) enable the fences. LISTEN (1 or 0): having set ALWAYS
 * the device loads the host's index again.
 */
#define EVENTS	3
#define ROOM	1

byte entries;		/* visible entries */
byte index;		/* the host's */
byte arm;		/* armed index, plus 1; 0 = not armed */
bool always;
bool rung;
byte irqs;
byte happened;
bool busy;		/* the device is in the middle of its work */

mtype = { ENTRY, INDEX, ARM_WORD, ALWAYS, DOORBELL, IRQ };

chan host_sb = [3] of { mtype, byte };
chan dev_sb = [4] of { mtype, byte };

#define FENCE(on, sb)	if :: on -> empty(sb) :: !(on) fi

inline drain(sb)
{
end:	do
	:: atomic { sb ? ENTRY(value) -> entries = value }
	:: atomic { sb ? INDEX(value) -> index = value }
	:: atomic { sb ? ARM_WORD(value) -> arm = value }
	:: atomic { sb ? ALWAYS(value) -> always = value }
	:: atomic { sb ? DOORBELL(value) -> rung = true }
	:: atomic { sb ? IRQ(value) -> irqs++ }
	od
}

proctype host_drain() { byte value; drain(host_sb) }
proctype dev_drain() { byte value; drain(dev_sb) }

/* Consume all, publish the index, arm, poll, and wait only if the ring is empty. */
proctype host()
{
	byte cons;
	bool ring;

again:
	do
	:: entries != cons -> cons++
	:: entries == cons -> break
	od;
	if
	:: cons == EVENTS -> goto out
	:: else
	fi;
	host_sb ! INDEX(cons);
	host_sb ! ARM_WORD(cons + 1);
	FENCE(HOST_FENCE, host_sb);
	ring = always;
	if
	:: ring -> host_sb ! DOORBELL(0)
	:: else
	fi;
	if
	:: entries != cons -> goto again
	:: entries == cons
	fi;
	if
	:: irqs > 0 -> irqs--; goto again
	:: happened == EVENTS && !busy && !rung && irqs == 0 && empty(host_sb) && empty(dev_sb) ->
		assert(false)
	fi;
out:	skip
}

inline put()
{
	do
	:: held > 0 && prod - seen < ROOM -> prod++; held--; dev_sb ! ENTRY(prod)
	:: else -> break
	od
}

proctype device()
{
	byte prod, held, seen, word, fired;
	bool set;

end:	do
	:: atomic { happened < EVENTS && !busy -> busy = true; happened++; held++ };
work:		seen = index;
		put();
		if
		:: held > 0 ->
			dev_sb ! ALWAYS(1);
			set = true;
			if
			:: LISTEN ->
				FENCE(DEV_FENCE, dev_sb);
				if
				:: index != seen -> goto work
				:: else
				fi
			:: !LISTEN
			fi
		:: held == 0 && set -> dev_sb ! ALWAYS(0); set = false
		:: else
		fi;
		FENCE(DEV_FENCE, dev_sb);
		word = arm;
		if
		:: word && word != fired && prod >= word -> fired = word; dev_sb ! IRQ(0)
		:: else
		fi;
		busy = false
	:: atomic { rung -> rung = false; busy = true }; goto work
	od
}

init
{
	atomic { run host(); run device(); run host_drain(); run dev_drain() }
}
