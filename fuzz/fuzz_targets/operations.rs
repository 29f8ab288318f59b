//! The coverage-guided target. What an input means and what must hold is in `src/`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| duetime_fuzz::check(bytes));
