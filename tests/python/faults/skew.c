/* Moves the wall clock of one process, and no other clock: LD_PRELOAD=skew.so. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long skew_seconds;

void skew_set(long seconds) { skew_seconds = seconds; }

int clock_gettime(clockid_t id, struct timespec *now) {
    int answer = (int)syscall(SYS_clock_gettime, id, now);
    if (answer == 0 && id == CLOCK_REALTIME) now->tv_sec += skew_seconds;
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int answer = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return answer;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}
