/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completing against arming (ORN-RNG-9 to 12).
 *
 * Store buffers and fences as in post_sleep.pml. "entries" counts the entries whose phase
 * the host can see; every entry may be solicited or not, every arm asks for any or for
 * solicited ones. Serial numbers wrap at 4. Proved: the host never ends up waiting for an
 * event that is owed and will not come.
 *
 * HOST_FENCE and DEV_FENCE (1 or 0) enable the fences. BY_DOORBELL 1: the device keeps
 * ALWAYS set and reads the arm word only at a doorbell.
 */
#define ENTRIES	3
#define SN	4

#define NONE	0
#define SOL	1
#define ANY	2

#define ARM(index, sn, type)	((index) + 4 * (sn) + 16 * (type))
#define INDEX_OF(word)		((word) % 4)
#define SN_OF(word)		(((word) / 4) % SN)
#define TYPE_OF(word)		((word) / 16)

byte entries;		/* visible entries */
byte arm;
byte rung;		/* a doorbell's arm word, 0 = none; a later one replaces it */
byte events;		/* fired and not yet consumed */
byte produced;		/* written by the device, visible or not */
byte solicited;		/* index past the last solicited entry written */
bool done;		/* no more entries come */

mtype = { ENTRY, ARM_WORD, DOORBELL, EVENT };

chan host_sb = [2] of { mtype, byte };
chan dev_sb = [4] of { mtype, byte };

#define FENCE(on, sb)	if :: on -> empty(sb) :: !(on) fi

inline drain(sb)
{
end:	do
	:: atomic { sb ? ENTRY(value) -> entries = value }
	:: atomic { sb ? ARM_WORD(value) -> arm = value }
	:: atomic { sb ? DOORBELL(value) -> rung = value }
	:: atomic { sb ? EVENT(value) -> events++ }
	od
}

proctype host_drain() { byte value; drain(host_sb) }
proctype dev_drain() { byte value; drain(dev_sb) }

/* Arm, poll, and wait only if the ring is empty; consume all, arm again. */
proctype host()
{
	byte cons, sn = 1, type, want;

again:
	cons = entries;
	if
	:: want = ANY
	:: want = SOL
	fi;
	if
	:: want > type -> type = want
	:: else
	fi;
	host_sb ! ARM_WORD(ARM(cons, sn, type));
	FENCE(HOST_FENCE, host_sb);
	if
	:: BY_DOORBELL -> host_sb ! DOORBELL(ARM(cons, sn, type))
	:: !BY_DOORBELL
	fi;
	if
	:: entries != cons -> goto again
	:: entries == cons
	fi;
	if
	:: events > 0 -> atomic { events--; sn = (sn + 1) % SN; type = NONE }; goto again
	:: done && empty(host_sb) && empty(dev_sb) && !rung && events == 0 ->
		assert(type == ANY -> produced == cons : solicited <= cons)
	fi
}

/*
 * Evaluate an arm word. Its index counts when it is first seen, afterwards any newer entry
 * does: seen_* are the device's counts at the previous evaluation.
 */
inline look(word)
{
	d_step {
		hit = false;
		if
		:: TYPE_OF(word) == ANY ->
			hit = (word != seen -> produced > INDEX_OF(word) : produced != seen_prod)
		:: TYPE_OF(word) == SOL ->
			hit = (word != seen -> solicited > INDEX_OF(word) :
					       solicited != seen_sol)
		:: else
		fi;
		hit = hit && SN_OF(word) != fired;
		seen = word;
		seen_prod = produced;
		seen_sol = solicited
	};
	if
	:: hit -> fired = SN_OF(word); dev_sb ! EVENT(0)
	:: else
	fi
}

proctype device()
{
	byte seen, seen_prod, seen_sol, fired, word;
	bool hit;

end:	do
	:: produced < ENTRIES ->
		atomic {
			produced++;
			if
			:: solicited = produced
			:: skip
			fi
		};
		dev_sb ! ENTRY(produced);
		if
		:: !BY_DOORBELL ->
			FENCE(DEV_FENCE, dev_sb);
			word = arm;
			look(word)
		:: BY_DOORBELL -> look(seen)
		fi
	:: produced == ENTRIES && !done -> done = true
	:: atomic { BY_DOORBELL && rung -> word = rung; rung = 0; look(word) }
	od
}

init
{
	atomic { run host(); run device(); run host_drain(); run dev_drain() }
}
