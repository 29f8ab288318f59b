//! The history against a plain list.

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::info::Facts;
use crate::state::TaskState;

fn info(id: i64) -> TaskInfo {
    Facts::default().into_info(TaskId::Int(id), TaskState::Done, Timestamp::ZERO)
}

#[derive(Clone, Debug)]
enum Step {
    Finish(i64),
    Forget(i64),
}

/// The scheduler's own ids are negative.
fn any_id() -> std::ops::Range<i64> {
    -15..15
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![any_id().prop_map(Step::Finish), any_id().prop_map(Step::Forget)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// A forgotten record keeps its place until the places after it have filled up: so the plain
    /// list holds a hole there too.
    #[test]
    fn the_last_ones_are_remembered(
        limit in 0..12_usize, steps in prop::collection::vec(any_step(), 0..200),
    ) {
        let mut registry = Registry::new(limit);
        let mut list: Vec<Option<i64>> = Vec::new();
        for step in steps {
            match step {
                // An id that is known is never finished again.
                Step::Finish(id) if !list.contains(&Some(id)) => {
                    registry.history.push(info(id));
                    list.push(Some(id));
                    list.drain(..list.len().saturating_sub(limit));
                }
                Step::Finish(_) => {}
                Step::Forget(id) => {
                    let place = list.iter().position(|known| *known == Some(id));
                    prop_assert_eq!(registry.forget(&TaskId::Int(id)), place.is_some());
                    if let Some(place) = place {
                        list[place] = None;
                    }
                }
            }
            let known = registry.finished().map(|info| info.id.clone());
            let expected = list.iter().flatten().map(|&id| TaskId::Int(id));
            prop_assert!(known.eq(expected));
            for id in any_id() {
                let found = matches!(registry.find(&TaskId::Int(id)), Some(Holder::Finished(found)) if found == info(id));
                prop_assert_eq!(found, list.contains(&Some(id)));
            }
            prop_assert!(registry.history.records.len() <= limit);
            let places = &registry.history.places;
            let places = places.made.len() + places.given.len();
            prop_assert_eq!(places, list.iter().flatten().count());
        }
    }
}
