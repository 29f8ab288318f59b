//! Where runs go on after their job returned: one thread for all inputs. Invariant: it ends each of
//! them, in the order of their coming, so that the scheduler comes to rest.

use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;

use duetime::{Completion, JobError, Later, Outcome};

use crate::bytes::Bytes;

type Work = Box<dyn FnOnce() + Send>;

/// How such a run ends.
#[derive(Clone, Copy)]
pub(crate) enum Finish {
    AsItSays,
    /// It goes on elsewhere once more, first.
    Again,
    GivesWay,
    Dropped,
}

impl Finish {
    pub(crate) fn decode(bytes: &mut Bytes) -> Self {
        match bytes.below(6) {
            0 => Self::GivesWay,
            1 => Self::Dropped,
            2 => Self::Again,
            _ => Self::AsItSays,
        }
    }
}

/// A run that ends elsewhere; `leave` is called right before that.
pub(crate) fn outcome(finish: Finish, fails: bool, leave: Work) -> Outcome {
    Later::new(move |completion: Completion| {
        completion.on_stop(|| ());
        send(Box::new(move || {
            if let Finish::Again = finish {
                return completion.finish(outcome(Finish::AsItSays, fails, leave));
            }
            leave();
            match finish {
                Finish::AsItSays | Finish::Again => completion.finish(!fails),
                Finish::GivesWay => completion.give_way(JobError::new("gives way")),
                Finish::Dropped => drop(completion),
            }
        }));
    })
    .into()
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
