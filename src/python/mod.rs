//! The Python module. Invariants: it wraps only what the crate exports; a Python reference is
//! dropped while attached; no lock of the core is held while Python code may run.

#![allow(clippy::doc_markdown, reason = "what is documented here is shown by Python, as it is")]

mod blocking;
mod call;
mod clock;
mod context;
mod core;
mod dependencies;
mod draft;
mod elsewhere;
mod errors;
mod exit;
mod filter;
mod future;
mod interrupt;
mod job;
mod life;
mod listener;
mod lookup;
#[cfg(unix)]
mod main_thread;
mod numbers;
mod own;
mod pickling;
mod plain;
mod policies;
mod records;
mod recurrences;
mod repr;
mod rules;
mod run;
mod scheduler;
mod seen;
mod stage;
mod stay;
mod task;
mod thread;

use pyo3::exceptions::PyImportError;
use pyo3::{ffi, prelude::*};

/// All that the files of this folder look up.
const LOOKUPS: &[&[&dyn lookup::Lookup]] = &[
    blocking::LOOKUPS,
    call::LOOKUPS,
    elsewhere::LOOKUPS,
    errors::LOOKUPS,
    future::LOOKUPS,
    interrupt::LOOKUPS,
    job::LOOKUPS,
    #[cfg(unix)]
    main_thread::LOOKUPS,
    numbers::LOOKUPS,
    pickling::LOOKUPS,
    plain::LOOKUPS,
    records::LOOKUPS,
    rules::LOOKUPS,
    thread::LOOKUPS,
];

/// The core's threads attach to the main interpreter, so only there can they run jobs.
fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: attached, so there is a current interpreter; its id is read from it.
    let interpreter = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if interpreter == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err("duetime cannot be used in a subinterpreter, only in the main one"))
}

/// The native part of the package `duetime`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::clock::ManualClock;
    #[pymodule_export]
    use super::elsewhere::Completion;
    #[pymodule_export]
    use super::exit::_shutdown_all;
    #[pymodule_export]
    use super::numbers::_seconds;
    #[pymodule_export]
    use super::policies::{ExponentialBackoff, Never};
    #[pymodule_export]
    use super::recurrences::{FixedDelay, FixedRate, OneTime};
    #[pymodule_export]
    use super::run::{Run, current_run};
    #[pymodule_export]
    use super::scheduler::Scheduler;
    #[pymodule_export]
    use super::task::Task;
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    use pyo3::prelude::*;

    /// Two classes are called `FixedDelay` in Python; here the policy has another name.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::refuse_subinterpreters()?;
        super::lookup::fill(module.py(), super::LOOKUPS)?;
        super::plain::join(&module.py().get_type::<Scheduler>(), ["after", "at"])?;
        super::plain::join_class(&module.py().get_type::<Task>())?;
        let _ = module.py().get_type::<super::life::End>(); // made now, as all that is looked up
        module.add("RetryFixedDelay", module.py().get_type::<super::policies::RetryFixedDelay>())
    }
}
