#!/usr/bin/env bash
# Checks the model of the wake-up protocol: every property in every setting, and that each broken variant of the model
# is caught. Under a minute on two cores; `proof/check.sh all` adds the large settings, which take ten minutes and 16 GB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for tool in spin gcc; do
    command -v "$tool" >/dev/null || {
        echo "proof/check.sh needs $tool; on Debian or Ubuntu: apt-get install spin gcc" >&2
        exit 2
    }
done

model=$PWD/wakeups.pml
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

# Two workers and two tasks where nothing else is said. Name, options of the model, what pan is compiled for: SAFETY, or NP for "and no run goes on for ever".
settings=(
    "three workers|-DW=3 -DSPURIOUS=0|NP"
    "any number of wake-ups without a reason|-DENDLESS|SAFETY"
    "three workers, one task, the same|-DW=3 -DN=1 -DENDLESS|SAFETY"
    "two wake-ups without a reason|-DSPURIOUS=2|NP"
    "a series|-DSERIES|NP"
    "a cancel|-DCANCEL -DSPURIOUS=0|NP"
    "a close or a drain|-DN=1 -DCLOSE|NP"
    "clock moved by hand|-DMANUAL|NP"
    "three workers, clock moved by hand|-DW=3 -DN=1 -DMANUAL|NP"
    "clock moved by two hands|-DN=1 -DLAST=3 -DMANUAL|NP"
)
large=(
    "three workers, any number of wake-ups without a reason|-DW=3 -DENDLESS|SAFETY"
    "three workers, three tasks|-DW=3 -DN=3 -DSPURIOUS=0|SAFETY"
    "three workers, a cancel|-DW=3 -DCANCEL -DSPURIOUS=0|SAFETY"
    "a cancel|-DCANCEL|NP"
    "three workers, a close or a drain|-DW=3 -DN=1 -DCLOSE -DSPURIOUS=0|SAFETY"
    "two tasks, a close or a drain|-DCLOSE -DSPURIOUS=0|SAFETY"
    "three workers, two tasks, clock moved by hand|-DW=3 -DMANUAL -DSPURIOUS=0|SAFETY"
    "two tasks, clock moved by two hands|-DLAST=3 -DMANUAL|SAFETY"
)
# What is done wrong, its number in the model, a setting in which it shows.
broken=(
    "add wakes nobody|1|"
    "take wakes nobody|2|"
    "looking and lying down are two critical sections|3|"
    "moves of the clock are not counted|4|-DMANUAL"
    "no alarm is set|5|"
    "who arrives still counts as on its way|6|"
    "who moves the clock wakes nobody|7|-DMANUAL"
    "a close wakes one sleeper only|8|-DN=1 -DCLOSE"
    "the time of the last move is forgotten|9|-DMANUAL"
    "who wakes by itself stays on the list|10|"
    "a tombstone is taken|11|-DCANCEL"
    "a drain goes by the worker's own, older reading|12|-DN=1 -DCLOSE"
    "the lock is let go between looking and taking|13|"
)
[[ ${1:-} != all ]] || settings+=("${large[@]}")

# Makes a checker in a room of its own and runs it; the report goes to $3/report.
search() { # options, compiled for, room, optimisation
    mkdir "$3"
    cd "$3"
    # shellcheck disable=SC2086 # the options are words
    spin -a $1 "$model" >spin.log || { cat spin.log; return 1; }
    gcc "$4" -w -D"$2" -DVECTORSZ=1024 -o pan pan.c
    ./pan -m20000 $([[ $2 != NP ]] || echo -l) >report
}

hold() {
    IFS='|' read -r name options kind <<<"$1"
    search "$options" "$kind" "$room/hold$2" -O2
    local states
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$room/hold$2/report")
    if grep -q 'errors: 0$' "$room/hold$2/report" && ! grep -q 'max search depth too small\|out of memory' "$room/hold$2/report"; then
        printf 'holds   %10.0f states   %s\n' "$states" "$name"
    else
        printf 'FAILS   %s (%s)\n' "$name" "$options"
        grep -m1 '^pan:' "$room/hold$2/report" || true
        return 1
    fi
}

catch() {
    IFS='|' read -r name number options <<<"$1"
    search "$options -DBROKEN=$number" SAFETY "$room/broken$number" -O1
    if grep -q '^pan:1: \(assertion violated\|invalid end state\)' "$room/broken$number/report"; then
        printf 'caught  %s\n' "$name"
    else
        printf 'MISSED  %s (-DBROKEN=%s)\n' "$name" "$number"
        return 1
    fi
}

# Two at a time. Each leaves its line; they are shown in order.
run_all() { # function, entries...
    local function=$1 n=0 wrong=0
    local -a waiting=()
    shift
    for entry in "$@"; do
        n=$((n + 1))
        (
            "$function" "$entry" "$n" >"$room/$function.$n" 2>&1 || echo wrong >>"$room/wrong"
        ) &
        waiting+=($!)
        if ((${#waiting[@]} == 2)); then
            wait "${waiting[0]}"
            cat "$room/$function.$((n - 1))"
            waiting=("${waiting[1]}")
        fi
    done
    wait
    cat "$room/$function.$n"
}

started=$SECONDS
run_all hold "${settings[@]}"
run_all catch "${broken[@]}"
total=$(cat "$room"/hold*/report | awk '/states, stored/ { sum += $1 } END { printf "%d", sum }')
echo "C, WAY, START, TAKEN, ENDED in ${#settings[@]} settings ($total states); ${#broken[@]} broken variants; $((SECONDS - started)) s"
[[ ! -e $room/wrong ]]
