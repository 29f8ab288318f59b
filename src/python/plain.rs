//! What takes options, for the calls that give none. Invariant: what is two functions to PyO3 is one to
//! Python, and answers the same whichever of the two is called.
//!
//! PyO3 has a method that takes `**options` called with a tuple, which is made for the call, and a class
//! with a tuple and a dict; that costs more than all else that such a call does around the core. A method
//! that takes none is handed its arguments as they lie. So each has a plain twin, and between the two
//! chooses a function that is given what CPython has: most calls are plain.

use std::ptr;
use std::sync::OnceLock;

use pyo3::ffi::{self, PyMethodDef, PyMethodDefPointer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::lookup::{Lookup, Names};
use super::stay;

/// What a plain call gives at least. Whoever gives less is told by the method, under its own name.
const REQUIRED: ffi::Py_ssize_t = 2;

/// A method and its plain twin, as CPython calls them.
struct Twins {
    whole: ffi::PyCFunctionWithKeywords,
    plain: ffi::PyCFunctionFastWithKeywords,
}

/// Filled at import, under the GIL.
static TWINS: [OnceLock<Twins>; 2] = [const { OnceLock::new() }; 2];

/// The keyword arguments of a plain call of the class, in the order of its plain twin.
static KEYWORDS: Names<3> = Names::new(["due", "job", "args"]);
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&KEYWORDS];

/// The class's plain twin. Filled as those.
static PLAIN: OnceLock<Py<PyAny>> = OnceLock::new();

/// Has calls of this class without options go to its static method `_plain`.
pub(super) fn join_class(class: &Bound<'_, PyType>) -> PyResult<()> {
    if PLAIN.get().is_none() {
        let plain = class.getattr("_plain")?.unbind();
        PLAIN.get_or_init(|| plain);
        class.delattr("_plain")?;
        // SAFETY: attached, the class lives for ever, and nobody has called it yet.
        unsafe { (*class.as_type_ptr()).tp_vectorcall = Some(make) };
    }
    Ok(())
}

/// Makes one method of each of these and its plain twin, which is the same with `_` before its name.
pub(super) fn join(class: &Bound<'_, PyType>, names: [&str; 2]) -> PyResult<()> {
    let [one, other] = names;
    join_one::<0>(class, one)?;
    join_one::<1>(class, other)
}

fn join_one<const N: usize>(class: &Bound<'_, PyType>, name: &str) -> PyResult<()> {
    if TWINS[N].get().is_some() {
        return Ok(()); // the module is imported again, with the same class
    }
    let twin = format!("_{name}");
    let (whole, plain) = (definition(class, name)?, definition(class, &twin)?);
    class.delattr(twin)?;
    let conventions = (whole.ml_flags, plain.ml_flags);
    if conventions != (ffi::METH_VARARGS | ffi::METH_KEYWORDS, FAST) {
        return Ok(()); // a PyO3 that calls them otherwise: then the whole one does
    }
    // SAFETY: the flags say that they are functions of these types.
    let twins = unsafe {
        Twins {
            whole: whole.ml_meth.PyCFunctionWithKeywords,
            plain: plain.ml_meth.PyCFunctionFastWithKeywords,
        }
    };
    TWINS[N].get_or_init(|| twins);
    let ml_meth = PyMethodDefPointer { PyCFunctionFastWithKeywords: choose::<N> };
    // It lives as long as the class, which is for ever.
    let joined = Box::leak(Box::new(PyMethodDef { ml_meth, ml_flags: FAST, ..whole }));
    // SAFETY: attached, and all that is pointed to lives for ever: PyO3's names and texts are statics.
    let method = unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), joined);
        Bound::from_owned_ptr_or_err(class.py(), method)?
    };
    class.setattr(name, method)
}

const FAST: i32 = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;

/// How PyO3 defined a method.
fn definition(class: &Bound<'_, PyType>, name: &str) -> PyResult<PyMethodDef> {
    let method = class.getattr(name)?;
    // SAFETY: a method of a native class is one of these, and its definition lives for ever.
    Ok(unsafe { *(*method.as_ptr().cast::<ffi::PyMethodDescrObject>()).d_method })
}

/// Calls the one or the other.
unsafe extern "C" fn choose<const N: usize>(
    this: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    stay::here();
    let twins = TWINS[N].get().expect("set before there was a method that calls this");
    if names.is_null() && count >= REQUIRED {
        // SAFETY: as CPython called this.
        return unsafe { (twins.plain)(this, args, count, names) };
    }
    // SAFETY: attached, for CPython calls this; and what it calls it with.
    let given = unsafe { Given { py: Python::assume_attached(), args, count, names } };
    // SAFETY: this is what it was called on, and the others are a tuple and a dict or null.
    given.pass_on(|args, options| unsafe { (twins.whole)(this, args, options) })
}

/// Calls the class, or its plain twin.
unsafe extern "C" fn make(
    class: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    flagged_count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    stay::here();
    // SAFETY: attached, for CPython calls this; and what it calls it with.
    let given = unsafe {
        let count = ffi::PyVectorcall_NARGS(flagged_count);
        Given { py: Python::assume_attached(), args, count, names }
    };
    let plain = PLAIN.get().expect("set before it was the class's");
    if let Some(args) = given.plain() {
        // SAFETY: attached, and all are live objects.
        return unsafe {
            ffi::PyObject_Vectorcall(plain.as_ptr(), args.as_ptr(), args.len(), ptr::null_mut())
        };
    }
    given.pass_on(|args, options| {
        // SAFETY: attached. It is a class, so its class can be called, with a tuple and a dict or null.
        unsafe {
            let call = (*ffi::Py_TYPE(class)).tp_call.expect("a class can be called");
            call(class, args, options)
        }
    })
}

/// What CPython calls a function with: `count` live objects, and behind them those that go with `names`,
/// a tuple or null.
struct Given<'py> {
    py: Python<'py>,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
}

impl<'py> Given<'py> {
    /// Calls a function with the same, as a tuple and a dict or null.
    fn pass_on(
        &self,
        call: impl FnOnce(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject,
    ) -> *mut ffi::PyObject {
        match self.packed() {
            Ok((args, options)) => {
                let options = options.as_ref().map_or(ptr::null_mut(), Bound::as_ptr);
                call(args.as_ptr(), options)
            }
            Err(error) => {
                error.restore(self.py);
                ptr::null_mut()
            }
        }
    }

    /// What the class's plain twin is called with, if this is all that is given: an id or none, and the
    /// [`KEYWORDS`], without `args` or with it.
    fn plain(&self) -> Option<[*mut ffi::PyObject; 4]> {
        // SAFETY: attached, and it lives for ever.
        let none = unsafe { ffi::Py_None() };
        let id = match self.count {
            0 => none,
            1 => self.object(0).as_ptr(),
            _ => return None,
        };
        let mut keywords = [ptr::null_mut(), ptr::null_mut(), none];
        // SAFETY: null or a live object.
        let names = unsafe { Bound::from_borrowed_ptr_or_opt(self.py, self.names) }?;
        for (name, at) in names.cast::<PyTuple>().ok()?.iter().zip(self.count.cast_unsigned()..) {
            let place = KEYWORDS.get(self.py).iter().position(|keyword| name.is(keyword))?;
            keywords[place] = self.object(at).as_ptr();
        }
        let [due, job, args] = keywords;
        let is_whole = !due.is_null() && !job.is_null();
        is_whole.then_some([id, due, job, args])
    }

    /// The same as a tuple and a dict.
    fn packed(&self) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
        let count = self.count.cast_unsigned();
        let positional = PyTuple::new(self.py, (0..count).map(|at| self.object(at)))?;
        // SAFETY: null or a live object.
        let names = unsafe { Bound::from_borrowed_ptr_or_opt(self.py, self.names) };
        let Some(names) = names else { return Ok((positional, None)) };
        let options = PyDict::new(self.py);
        for (name, at) in names.cast::<PyTuple>()?.iter().zip(count..) {
            options.set_item(name, self.object(at))?;
        }
        Ok((positional, Some(options)))
    }

    fn object(&self, at: usize) -> Bound<'py, PyAny> {
        // SAFETY: there are so many.
        unsafe { Bound::from_borrowed_ptr(self.py, *self.args.add(at)) }
    }
}
