//! Where runs go on after their job returned: on one thread for all inputs, which ends each of them in
//! the order of their coming; or up in the air. Invariant: of the latter it is known what ends them, so
//! that the scheduler comes to rest.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;

use duetime::{Completion, JobError, Later, Outcome};

use crate::attempts::Stand;
use crate::bytes::Bytes;
use crate::deed::Doing;

type Work = Box<dyn FnOnce() + Send>;

/// How such a run ends.
#[derive(Clone, Copy)]
pub(crate) enum Finish {
    AsItSays,
    /// It goes on elsewhere once more, first.
    Again,
    GivesWay,
    Dropped,
    /// When the world lets it, or if it obeys when it is told to stop.
    Kept {
        obeys: bool,
    },
}

impl Finish {
    pub(crate) fn decode(bytes: &mut Bytes) -> Self {
        match bytes.below(9) {
            0 => Self::GivesWay,
            1 => Self::Dropped,
            2 => Self::Again,
            3 | 4 => Self::Kept { obeys: false },
            5 => Self::Kept { obeys: true },
            _ => Self::AsItSays,
        }
    }
}

/// A run that ends elsewhere.
pub(crate) fn outcome(finish: Finish, doing: Doing, good: bool) -> Outcome {
    Later::new(move |completion: Completion| match finish {
        Finish::Kept { obeys } if doing.is_timed() => keep(completion, doing, good, obeys),
        _ => {
            completion.on_stop(|| ());
            send(Box::new(move || end(completion, finish, doing, good)));
        }
    })
    .into()
}

fn end(completion: Completion, finish: Finish, doing: Doing, good: bool) {
    match finish {
        Finish::Again => completion.finish(outcome(Finish::AsItSays, doing, good)),
        Finish::GivesWay => {
            doing.leave(false);
            completion.give_way(JobError::new("gives way"));
        }
        Finish::Dropped => {
            doing.leave(false);
            drop(completion);
        }
        Finish::AsItSays | Finish::Kept { .. } => {
            doing.leave(good);
            completion.finish(good);
        }
    }
}

fn keep(completion: Completion, doing: Doing, good: bool, obeys: bool) {
    let kept = Arc::new(Mutex::new(Some(completion)));
    let finish = {
        let (kept, doing) = (Arc::clone(&kept), doing.clone());
        move || {
            let completion = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(completion) = completion else { return };
            // Who was told to stop gives way.
            let finish = if obeys { Finish::GivesWay } else { Finish::AsItSays };
            end(completion, finish, doing, good);
        }
    };
    if obeys {
        let hook = Box::new(finish.clone());
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at_once = kept.as_ref().and_then(|completion| completion.try_on_stop(hook));
        drop(kept);
        if let Some(hook) = at_once {
            hook();
        }
    }
    // Only now the world may go on.
    doing.stand(Some(Stand::Flight { finish: Box::new(finish), obeys }));
}

fn send(work: Work) {
    static THREAD: OnceLock<Mutex<mpsc::Sender<Work>>> = OnceLock::new();
    let thread = THREAD.get_or_init(|| {
        let (sender, works) = mpsc::channel::<Work>();
        thread::spawn(move || works.iter().for_each(|work| work()));
        Mutex::new(sender)
    });
    let thread = thread.lock().unwrap_or_else(PoisonError::into_inner);
    thread.send(work).expect("it lives as long as the process");
}
