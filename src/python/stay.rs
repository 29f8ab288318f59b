//! Threads that the interpreter ends. Invariant: one that was [`here`] stays where it is then, and
//! nothing on its stack is unwound.
//!
//! Since Python 3.14 all such threads stay. Before, `pthread_exit` ends them, and that of glibc unwinds
//! their stacks, which aborts the process at the first Rust function. Where we call Python code
//! [`stop_at_end`](crate::stop_at_end) is in between. But Python code also runs where nobody calls it:
//! before Python 3.12 any object that is made may start the garbage collector, and with it a `__del__`;
//! and where PyO3 lets go of an object of ours, the callback of a weak reference to it is called.
//!
//! So such a thread is met before its first frame is left. A cleanup handler runs as soon as the frame
//! that its buffer lies in has been left, and a buffer on the heap lies in none. What is not met is a
//! collection that begins while PyO3 reads the arguments of a thread's first call, but of `after`, `at` and
//! `Task`.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) use glibc::here;

/// Elsewhere `pthread_exit` unwinds nothing.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn here() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::{c_int, c_void};
    use std::ptr;

    use pyo3::ffi;

    /// glibc's `struct _pthread_cleanup_buffer`.
    #[repr(C)]
    struct Buffer {
        routine: Option<extern "C" fn(*mut c_void)>,
        arg: *mut c_void,
        cancel_type: c_int,
        before: *mut Buffer,
    }

    type Routine = extern "C" fn(*mut c_void);

    unsafe extern "C" {
        /// What `pthread_cleanup_push` was made of once; a part of glibc's interface since 2.2.5.
        fn _pthread_cleanup_push(buffer: *mut Buffer, routine: Routine, arg: *mut c_void);
        fn _pthread_cleanup_pop(buffer: *mut Buffer, execute: c_int);
    }

    /// The handler of one thread, which owns the buffer.
    struct Stay(*mut Buffer);

    impl Stay {
        fn new() -> Self {
            let empty = Buffer {
                routine: None,
                arg: ptr::null_mut(),
                cancel_type: 0,
                before: ptr::null_mut(),
            };
            let buffer = Box::into_raw(Box::new(empty));
            // SAFETY: the buffer lives until the handler is taken back.
            unsafe { _pthread_cleanup_push(buffer, stay, ptr::null_mut()) };
            Self(buffer)
        }
    }

    impl Drop for Stay {
        fn drop(&mut self) {
            // SAFETY: the thread ends: all that was pushed later was in a frame that is gone. Nobody
            // else has the buffer.
            unsafe {
                _pthread_cleanup_pop(self.0, 0);
                drop(Box::from_raw(self.0));
            }
        }
    }

    thread_local! {
        static STAY: Stay = Stay::new();
    }

    /// From here on the calling thread stays where it is if the interpreter ends it. Said wherever a
    /// thread comes to us.
    pub(in super::super) fn here() {
        let _ = STAY.try_with(|_| ()); // not where the thread ends already
    }

    /// Who ends a thread while there is an interpreter is not the interpreter.
    extern "C" fn stay(_: *mut c_void) {
        // SAFETY: it may be asked at any time.
        if unsafe { ffi::Py_IsInitialized() } == 0 {
            loop {
                std::thread::park();
            }
        }
    }
}
