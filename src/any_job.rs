//! How a job is kept. Invariant: an [`AnyJob`] owns one job, which lies either in it or in a box, as its
//! `kind` says.
//!
//! Most jobs are no larger than a pointer: a function, a closure over one `Arc`, a Python object. To
//! make a box for each costs a third of what else a waiting task takes, and to free it when the task
//! is cancelled costs more than the cancel: the allocator's lists lead through all of memory.

use std::fmt;
use std::mem::{MaybeUninit, needs_drop};
use std::ops::{Deref, DerefMut};
use std::ptr;

use crate::job::Job;

/// Room for a pointer: to the box of a job, or a job in its place.
type Room = MaybeUninit<*mut ()>;

/// A job of any kind, in two words. One that is no larger than a pointer takes no other memory.
///
/// ```
/// # let scheduler = duetime::Scheduler::new();
/// use duetime::{AnyJob, IntoJob, Task};
/// let jobs: [AnyJob; 2] = [(|| println!("tick")).into_job(), (|| 42 > 6).into_job()];
/// for job in jobs {
///     scheduler.schedule(Task::new(scheduler.now(), job))?;
/// }
/// # Ok::<_, duetime::Error>(())
/// ```
pub struct AnyJob {
    room: Room,
    kind: &'static Kind,
}

/// Where the job lies in an [`AnyJob`], and of which type it is.
struct Kind {
    /// Gives the job. The room must be that of an [`AnyJob`] of this kind.
    find: unsafe fn(*mut Room) -> *mut dyn Job,
    /// Drops it, once; `None` if there is nothing to do. The same goes for the room.
    drop: Option<unsafe fn(*mut Room)>,
}

impl Kind {
    const fn here<J: Job>() -> Self {
        Self {
            find: find_here::<J>,
            drop: if needs_drop::<J>() { Some(drop_here::<J>) } else { None },
        }
    }

    const fn boxed<J: Job>() -> Self {
        Self { find: find_boxed::<J>, drop: Some(drop_boxed::<J>) }
    }
}

unsafe fn find_here<J: Job>(room: *mut Room) -> *mut dyn Job {
    room.cast::<J>()
}

unsafe fn find_boxed<J: Job>(room: *mut Room) -> *mut dyn Job {
    // SAFETY: of this kind a box's pointer was written.
    unsafe { (*room).assume_init() }.cast::<J>()
}

unsafe fn drop_here<J: Job>(room: *mut Room) {
    // SAFETY: of this kind a job was written, and it goes once.
    unsafe { ptr::drop_in_place(room.cast::<J>()) }
}

unsafe fn drop_boxed<J: Job>(room: *mut Room) {
    // SAFETY: of this kind a box's pointer was written, and it goes once.
    unsafe { drop(Box::from_raw((*room).assume_init().cast::<J>())) }
}

// SAFETY: it owns its job, and jobs are `Send`.
unsafe impl Send for AnyJob {}

impl AnyJob {
    pub(crate) fn new<J: Job>(job: J) -> Self {
        let mut room = Room::uninit();
        if size_of::<J>() <= size_of::<Room>() && align_of::<J>() <= align_of::<Room>() {
            // SAFETY: it fits, as was just asked.
            unsafe { room.as_mut_ptr().cast::<J>().write(job) };
            Self { room, kind: const { &Kind::here::<J>() } }
        } else {
            room.write(Box::into_raw(Box::new(job)).cast());
            Self { room, kind: const { &Kind::boxed::<J>() } }
        }
    }
}

impl Deref for AnyJob {
    type Target = dyn Job;

    fn deref(&self) -> &Self::Target {
        // SAFETY: the room is of this kind, and the job is borrowed as `self` is.
        unsafe { &*(self.kind.find)((&raw const self.room).cast_mut()) }
    }
}

impl DerefMut for AnyJob {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: the room is of this kind, and the job is borrowed as `self` is.
        unsafe { &mut *(self.kind.find)(&raw mut self.room) }
    }
}

impl Drop for AnyJob {
    fn drop(&mut self) {
        if let Some(drop) = self.kind.drop {
            // SAFETY: the room is of this kind, and the job goes once, here.
            unsafe { drop(&raw mut self.room) }
        }
    }
}

impl fmt::Debug for AnyJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyJob(..)")
    }
}
