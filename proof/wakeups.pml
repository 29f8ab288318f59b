/*
 * The wake-up protocol of src/idle.rs, src/room.rs, src/queue.rs and src/sleep.rs, for spin.
 *
 * How to read it. What happens under the queue's lock is one d_step: the lock makes it indivisible.
 * Reading the clock, ringing a bell after unlocking and falling asleep lie outside, and anything may
 * happen in between. A condition variable is exactly what the system promises: `wait` lets go of
 * the lock and sleeps in one step; a signal wakes whoever sleeps at that moment and is lost
 * otherwise; a sleeper also wakes when its alarm is past, and for no reason at all. (An alarm that
 * rings early is a wake-up for no reason.)
 *
 * Checked at every unlock, in check():
 *   C     while a worker sleeps and a task waits, somebody is awake and comes to look, or a
 *         sleeper's bell is about to be rung, or a sleeper has an alarm at or before the first due
 *         time. (Where the clock is moved by hand: only once a task is due, and no alarm counts.)
 *   WAY   on_way counts those who are on their way, no more and no less.
 * Checked where it happens:
 *   START no run starts before its due time, of a task that runs already, or of one that was
 *         cancelled.
 * Checked whenever nothing moves any more, in the monitor:
 *   TAKEN every task that is due was taken or cancelled; none is left half way.
 *   ENDED after a close or a drain all workers have ended, and with them all tasks.
 * Without ENDLESS a sleeper wakes SPURIOUS times without a reason, every process has a bounded
 * number of things to do, and the search for cycles (pan -l) shows that no run goes on for ever.
 * So every run comes to the point where the monitor looks: TAKEN and ENDED hold in the end,
 * always.
 *
 * Options:
 *   MANUAL       a clock that is moved by hand (Pace::Manual) by two threads at a time; otherwise
 *                it goes on by itself (Pace::Monotonic)
 *   W, N, LAST   workers, tasks, and where the clock stops
 *   SERIES       task 0 runs twice: its worker brings it back
 *   CANCEL       somebody cancels any one task, at any time
 *   CLOSE        somebody closes the queue, drains it, or neither, at any time
 *   SPURIOUS=n   n wake-ups without a reason; ENDLESS: any number
 *   BROKEN=n     one thing is done wrong; see check.sh
 *
 * Not in the model: priorities; the announcer of DUE events; naps (Run::wait); the rebuild of a
 * heap; clocks of unknown pace.
 */

#ifndef W
#define W 2
#endif
#ifndef N
#define N 2
#endif
#ifndef LAST
#define LAST 2
#endif
#ifndef SPURIOUS
#define SPURIOUS 1
#endif
#ifndef BROKEN
#define BROKEN 0
#endif

#define NONE 15
#define NEVER 15

/* state.rs. UNBORN is not a state there: the task is not registered yet. */
#define UNBORN 0
#define TELLING 1
#define WAITING 2
#define RUNNING 3
#define STOPPING 4
#define RECALLED 5
#define CANCELLED 6 /* and a tombstone in the heap */
#define ENDED 7 /* DONE, FAILED, or CANCELLED and in no heap */

/* room.rs, enum Phase */
#define OPEN 0
#define DRAINING 1
#define CLOSED 2

/* What a critical section says to do next. */
#define AGAIN 1
#define DOZE 2
#define TAKE 3
#define TASK 4
#define NOTHING 5
#define OVER 6

byte clock = 1;

/* Each task: its state, its due time, and how many runs it has to make. Entries of WAITING tasks lie
   in the heap, and as tombstones those of CANCELLED ones. */
byte state[N];
byte due[N];
byte runs[N];
bool runs_now[N]; /* ghost */

/* idle.rs, struct Idle. `armed` is sorted, the earliest first; usually two, see enter(). */
byte armed_at[W];
byte armed_who[W];
byte armed_len;
byte asleep[W];
byte asleep_len;
byte on_way;

/* room.rs, struct Room */
byte phase = OPEN;
byte moves;
byte latest;
byte alive = W;
byte cutoff; /* what was due when the drain began */

bool registry_closed; /* registry.rs */

/* The bells: who is inside Condvar::wait, and its alarm. */
bool in_wait[W];
byte alarm[W];

/* What each worker owes: owed.rs, struct Owed. */
bool arrival[W];

/* Ghosts. Awake: not asleep, not in a job, not gone. Summoned: off the list, and its bell is still
   to be rung, or it was rung and the sleeper has not noticed yet. */
bool awake[W];
bool summoned[W];
byte spurious;

/* Scratch, set before it is used in each d_step. */
hidden byte head, second, who, i, at, now_, count, covered;

/* heap.rs, DueHeap::head and second_due: the earliest live entry; tombstones before it are dropped;
   the due time of the entry after it, a tombstone or not. Ties: the order of the numbers. */
#define LIVE(t) (state[t] == WAITING || (BROKEN == 11 && state[t] == CANCELLED))

inline look() {
    head = NONE; second = NEVER;
    i = 0;
    do
    :: i < N ->
        if
        :: LIVE(i) && (head == NONE || due[i] < due[head]) -> head = i
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < N ->
        if
        :: state[i] == CANCELLED && !LIVE(i) &&
            (head == NONE || due[i] < due[head] || (due[i] == due[head] && i < head)) ->
            due[i] = 0; state[i] = ENDED
        :: else
        fi;
        if
        :: (state[i] == WAITING || state[i] == CANCELLED) && i != head && due[i] < second -> second = due[i]
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* idle.rs, Idle::summon. `who` is NONE if nobody is idle. */
inline summon() {
    if
    :: armed_len < 2 && asleep_len > 0 ->
        asleep_len--;
        who = asleep[asleep_len];
        asleep[asleep_len] = 0
    :: else ->
        if
        :: armed_len > 0 ->
            armed_len--;
            who = armed_who[armed_len];
            armed_who[armed_len] = 0; armed_at[armed_len] = 0
        :: else -> who = NONE
        fi
    fi;
    if
    :: who != NONE -> on_way++; summoned[who] = true
    :: else
    fi
}

/* room.rs, Room::restore: whom to wake so that the head is covered. */
inline restore(reading) {
    who = NONE;
    look();
    if
    :: armed_len + asleep_len > 0 && head != NONE ->
        now_ = reading;
        if
        :: BROKEN != 9 && latest > now_ -> now_ = latest
        :: else
        fi;
#ifdef MANUAL
        covered = (due[head] > now_ || on_way > 0);
#else
        covered = (on_way > 0 || (armed_len > 0 && armed_at[0] <= due[head]));
#endif
        if
        :: !covered -> summon()
        :: else
        fi
    :: else
    fi
}

/* idle.rs, Idle::enter, and then Pace::alarm (clock.rs). */
inline enter(w) {
    at = NEVER;
    if
    :: BROKEN == 5 || head == NONE
    :: else ->
        if
        :: !(armed_len > 0 && armed_at[0] <= due[head]) -> at = due[head]
        :: else ->
            if
            :: armed_len < 2 -> at = second
            :: else
            fi
        fi
    fi;
    if
    :: at != NEVER ->
        i = armed_len; /* behind those with the same alarm */
        do
        :: i > 0 && armed_at[i-1] > at ->
            armed_at[i] = armed_at[i-1]; armed_who[i] = armed_who[i-1]; i--
        :: else -> break
        od;
        armed_at[i] = at; armed_who[i] = w;
        armed_len++
    :: else ->
        asleep[asleep_len] = w;
        asleep_len++
    fi;
#ifdef MANUAL
    alarm[w] = NEVER
#else
    alarm[w] = at
#endif
}

/* idle.rs, Idle::leave. `covered` becomes: it woke by itself. */
inline leave(w) {
    covered = (BROKEN == 10 && !summoned[w]);
    i = (covered -> armed_len : 0);
    do
    :: i < armed_len ->
        if
        :: covered -> armed_at[i-1] = armed_at[i]; armed_who[i-1] = armed_who[i]
        :: !covered && armed_who[i] == w -> covered = true
        :: else
        fi;
        i++
    :: else -> break
    od;
    if
    :: BROKEN == 10 && covered
    :: BROKEN != 10 && covered -> armed_len--; armed_at[armed_len] = 0; armed_who[armed_len] = 0
    :: else ->
        i = 0;
        do
        :: i < asleep_len ->
            if
            :: covered -> asleep[i-1] = asleep[i]
            :: !covered && asleep[i] == w -> covered = true
            :: else
            fi;
            i++
        :: else -> break
        od;
        if
        :: covered -> asleep_len--; asleep[asleep_len] = 0
        :: else
        fi
    fi
}

/* room.rs, Room::settle */
inline settle(w) {
    if
    :: arrival[w] && BROKEN != 6 -> arrival[w] = false; on_way--
    :: else
    fi
}

/* Properties C and WAY, at an unlock. */
inline check() {
    look();
    count = 0;      /* those on their way, as WAY wants it */
    covered = true; /* as C wants it */
    at = 0;         /* how many sleep */
    i = 0;
    do
    :: i < W ->
        count = count + arrival[i] + summoned[i];
        at = at + in_wait[i];
        i++
    :: else -> break
    od;
    assert(count == on_way || BROKEN == 6);
#ifdef MANUAL
    if
    :: at > 0 && head != NONE && due[head] <= latest ->
#else
    if
    :: at > 0 && head != NONE ->
#endif
        covered = false;
        i = 0;
        do
        :: i < W ->
            if
            :: awake[i] || summoned[i] -> covered = true
            :: in_wait[i] && alarm[i] != NEVER && alarm[i] <= due[head] -> covered = true
            :: else
            fi;
            i++
        :: else -> break
        od
    :: else
    fi;
    assert(covered)
}

/* queue.rs, TaskQueue::unlock: all but the bell, which rings later. */
inline unlock(reading, bell) {
    restore(reading);
    bell = who;
    check()
}

/* Condvar::notify_one, after unlocking. */
inline ring(bell) {
    if
    :: bell != NONE ->
        d_step {
            if
            :: in_wait[bell] -> in_wait[bell] = false; awake[bell] = true
            :: else
            fi;
            bell = NONE
        }
    :: else
    fi
}

/* queue.rs, TaskQueue::add, with room.rs, Room::push; the task is TELLING or RECALLED. Then, if it
   was refused, shared.rs, Shared::complete_cancel. `reading`: Shared::queue_time. Where C holds
   before, TaskQueue::unlock_added does what unlock does. */
inline add(t, reading, bell) {
#ifdef MANUAL
    reading = clock;
#endif
    d_step {
        if
        :: phase == OPEN && state[t] == TELLING -> state[t] = WAITING
        :: else -> state[t] = ENDED; due[t] = 0
        fi;
        if
        :: BROKEN == 1 -> bell = NONE; check()
        :: else -> unlock(reading, bell)
        fi;
        reading = 0
    }
    ring(bell)
}

/* worker.rs, live and work */
proctype worker(byte w) {
    byte time, seen, next, bell = NONE, task = NONE;

sleep: /* sleep.rs, TaskQueue::sleep */
    time = clock;
    atomic {
        d_step {
            next = 0;
            if
            :: seen != moves && BROKEN != 4 -> next = AGAIN /* Room::has_moved */
            :: else ->
                look();
                if
                :: phase != OPEN || (head != NONE && due[head] <= time) ->
                    if
                    :: !arrival[w] -> arrival[w] = true; on_way++ /* Idle::depart */
                    :: else
                    fi;
                    next = TAKE
                :: else ->
                    settle(w);
                    next = DOZE
                fi
            fi;
            seen = moves;
            time = 0;
#if BROKEN == 3
        }
        if
        :: next == AGAIN -> next = 0; goto sleep
        :: next == TAKE -> next = 0; goto take
        :: else
        fi
    }
    atomic {
        d_step {
            /* It lies down by what it saw before. */
#else
            if
            :: next == DOZE ->
#endif
                /* sleep.rs, TaskQueue::doze */
                enter(w);
                in_wait[w] = true;
                awake[w] = false;
                check()
#if BROKEN != 3
            :: else
            fi
#endif
        }
        if
        :: next == AGAIN -> next = 0; goto sleep
        :: next == TAKE -> next = 0; goto take
        :: else -> next = 0
        fi
    }

    /* Inside Condvar::wait; then, with the lock again, the end of doze. */
end_wait:
    atomic {
        if
        :: !in_wait[w]
        :: in_wait[w] && alarm[w] != NEVER && clock >= alarm[w]
#ifdef ENDLESS
        :: in_wait[w]
#else
        :: in_wait[w] && spurious < SPURIOUS -> spurious++
#endif
        fi;
        d_step {
            in_wait[w] = false;
            alarm[w] = NEVER;
            awake[w] = true;
            leave(w);
            arrival[w] = !covered;
            summoned[w] = false;
            check()
        }
    }
    goto sleep;

take: /* worker.rs, work: the clock is read anew after a sleep, and only then */
    time = clock;
try: /* queue.rs, TaskQueue::try_take */
#if BROKEN == 13
    /* It looks under the lock, lets go of it, and takes what it saw. */
    atomic { d_step {
        look();
        task = (phase != CLOSED && head != NONE && due[head] <= time -> head : NONE)
    } }
#endif
    atomic { d_step {
        settle(w);
        seen = moves;
        look();
        /* Room::take. In a drain what was due when it began is due. */
        now_ = (BROKEN != 12 && phase == DRAINING && cutoff > time -> cutoff : time);
#if BROKEN == 13
        head = task;
#endif
        if
        :: phase == CLOSED -> next = OVER
        :: phase != CLOSED && head != NONE && due[head] <= now_ ->
            task = head;
            assert(state[task] == WAITING && !runs_now[task] && due[task] <= clock); /* START */
            state[task] = RUNNING;
            due[task] = 0;
            runs_now[task] = true;
            runs[task]--;
            awake[w] = false;
            next = TASK
        :: else -> next = (phase == DRAINING -> OVER : NOTHING)
        fi;
        if
        :: BROKEN == 2 -> bell = NONE; check()
        :: else -> unlock(time, bell)
        fi;
        time = 0
    } }
    ring(bell);
    if
    :: next == NOTHING -> next = 0; goto sleep
    :: next == OVER -> next = 0; goto exit
    :: next == TASK -> next = 0
    fi;

    /* The job runs. worker.rs, Story::end: what follows. A one-off task of which nobody is to be told
       ends in the next try_take instead, which nobody here can tell from this. */
    atomic {
        time = clock; /* `finished`, which also stands for the reading of the next take */
        d_step {
            runs_now[task] = false;
            if
            :: phase == OPEN && runs[task] > 0 && state[task] == RUNNING ->
                state[task] = TELLING; /* Story::goes_on, StateCell::try_tell */
                due[task] = time + 1
            :: else ->
                state[task] = ENDED;
                runs[task] = 0;
                task = NONE
            fi
        }
    }
    if
    :: task != NONE -> add(task, next, bell); next = 0; task = NONE
    :: else
    fi;
    awake[w] = true;
    goto try;

exit: /* queue.rs, TaskQueue::exit */
    atomic { d_step {
        settle(w);
        alive--;
        awake[w] = false;
        unlock(LAST, bell)
    } }
    ring(bell)
}

/* scheduler.rs, Scheduler::schedule: registers a task (admission.rs, admit), then brings it. Where
   nobody listens the two are one step (admit_and_bring), which is one of the orders tried here. */
proctype adder(byte first; byte end) {
    byte t = first, reading, bell = NONE;
    do
    :: t < end ->
        atomic {
            if
            :: registry_closed -> state[t] = ENDED
            :: else ->
                state[t] = TELLING;
                select(reading : 1 .. LAST + 1); /* due already, later, or not in this run */
                due[t] = reading;
                reading = 0
            fi
        }
        if
        :: state[t] != ENDED -> add(t, reading, bell)
        :: else
        fi;
        t++
    :: else -> break
    od
}

/* queue.rs, TaskQueue::cancel, with state.rs, StateCell::try_cancel. A task less leaves the head
   covered, so nobody is woken. */
inline cancel(t) {
    d_step {
        if
        :: state[t] == WAITING -> state[t] = CANCELLED
        :: state[t] == TELLING -> state[t] = RECALLED
        :: state[t] == RUNNING -> state[t] = STOPPING
        :: else
        fi;
        check()
    }
}

proctype canceller() {
    byte t;
    select(t : 0 .. N - 1);
    if
    :: state[t] != UNBORN -> cancel(t)
    fi
}

/* closing.rs, close, with queue.rs, TaskQueue::set_phase */
proctype closer() {
    byte t, now, ringing[W];
    bool drain;
    if
    :: drain = false
    :: drain = true
    :: goto stays_open
    fi;
    registry_closed = true; /* from here on no task is new */
#if BROKEN != 12
    now = clock; /* read before the workers hear of the drain */
#endif
    d_step {
        phase = (drain -> DRAINING : CLOSED);
        cutoff = now;
        /* Idle::summon_all */
        count = 0;
        do
        :: armed_len + asleep_len > 0 && !(BROKEN == 8 && count == 1) ->
            summon();
            ringing[count] = who;
            count++
        :: else -> break
        od;
        do
        :: count < W -> ringing[count] = NONE; count++
        :: else -> break
        od;
        check()
    }
    do
    :: t < W -> ring(ringing[t]); t++
    :: else -> t = 0; break
    od;
#if BROKEN == 12
    now = clock;
#endif
    do
    :: t < N ->
        if
        :: state[t] == UNBORN || state[t] == ENDED ||
            (drain && state[t] == WAITING && due[t] <= now) /* it runs first */
        :: else -> cancel(t)
        fi;
        t++
    :: else -> t = 0; now = 0; drain = false; break
    od;
stays_open:
    skip
}

/* The system's clock: it moves whenever it likes. */
proctype ticker() {
    do
    :: clock < LAST -> clock++
    :: else -> break
    od
}

/* manual_clock.rs, ManualClock::move_to: raise, then Driven::moved (shared.rs, queue.rs). */
proctype mover(byte target) {
    byte now, bell = NONE, also = NONE;
    d_step {
        if
        :: clock < target -> clock = target
        :: else
        fi
    }
    now = clock;
    d_step {
        moves++;
        if
        :: now > latest -> latest = now
        :: else
        fi;
        look();
        who = NONE;
        if
        :: head != NONE && due[head] <= now && on_way == 0 && BROKEN != 7 -> summon()
        :: else
        fi;
        also = who;
        if
        :: BROKEN == 7 -> bell = NONE; check()
        :: else -> unlock(now, bell)
        fi
    }
    ring(also);
    ring(bell)
}

init {
    byte k;
    d_step {
        latest = 1;
        do
        :: k < W -> awake[k] = true; alarm[k] = NEVER; k++
        :: else -> break
        od;
        k = 0;
        do
        :: k < N -> runs[k] = 1; k++
        :: else -> break
        od;
        k = 0;
#ifdef SERIES
        runs[0] = 2
#endif
    }
    atomic {
        do
        :: k < W -> run worker(k); k++
        :: else -> break
        od;
        k = 0;
        run adder(0, N - 1); /* one after the other */
        run adder(N - 1, N); /* and one more meanwhile */
#ifdef CANCEL
        run canceller();
#endif
#ifdef CLOSE
        run closer();
#endif
#ifdef MANUAL
        run mover(2);
        if
        :: LAST > 2 -> run mover(LAST)
        :: else
        fi
#else
        run ticker()
#endif
    }
    /* The monitor: nothing moves any more. */
    timeout;
    d_step {
        i = 0;
        do
        :: i < N ->
            assert(state[i] == ENDED || state[i] == CANCELLED || state[i] == UNBORN ||
                (state[i] == WAITING && phase == OPEN && due[i] > clock)); /* TAKEN */
            i++
        :: else -> break
        od;
        assert(phase == OPEN || alive == 0); /* ENDED */
        assert(alive == 0 || on_way == 0)
    }
}
