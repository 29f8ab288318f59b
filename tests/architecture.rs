//! The house rules that no compiler checks, read off the sources: who imports whom, and which
//! file alone may name what.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which file of `src/` imports from which. A new arrow is added here, if it is meant to be; it
/// must point down the picture in ARCHITECTURE.md. `lib` imports all and is imported by nobody.
const ARROWS: &str = "
waiting: clock closing crew error scheduler sync
steering: clock error handle id registry scheduler state
scheduler: admission builder clock crew error event handle id info into_job links record recurrence
    registry shared state stats task
builder: clock crew error event limits queue reading registry room scheduler shared stops
    surroundings sync threads
admission: body chance error id links record registry shared task
links: dependency error id job record registry run shared task
crew: closing error handle manual_clock shared surroundings threads
closing: room shared state
threads: announcer closing enforcer error inside shared surroundings sync watchdog worker
announcer: owed shared surroundings
watchdog: owed shared
enforcer: deadlines job owed queue shared story surroundings timeout
worker: attempt body clock deadlines door elsewhere heap job owed record run shared story
    surroundings taking
elsewhere: attempt body inside job later shared story
story: attempt body chance clock ending event info job owed plan recurrence shared state timeout
shared: clock ending error event handle hold inside job limits nap outcome owed patience queue
    reading record run state stops sync timeout
vigil: clock deadlines job overtime patience queue timeout
sleep: clock job nap owed patience queue room slack sync
quiet: clock queue
queue: clock deadlines ending error heap hold job outcome overtime owed record room state stats
    sync taking
owed: door ending info record
event: clock id inside job sync
stops: attempt job later record sync
handle: clock ending error id info inside job record run state sync
task: any_job body clock dependency error id into_job job limits plan recurrence retry series timeout
dependency: handle id
reading: clock job sync
manual_clock: clock error sync
hold: chance clock error record room state
overtime: clock deadlines room
deadlines: attempt clock timeout
reserve:
limits: clock error heap record
taking: clock heap outcome owed record room
room: clock deadlines door error heap idle limits nap owed record registry reserve state wakers
slack: clock
registry: dependents ending error history id info outcome record roll state stats
roll: history record
dependents: job record state
heap: clock line
idle: clock
door: clock
nap: clock
wakers: clock
patience: clock
into_job: any_job job run
run: attempt clock error id inside job leash nap patience record slack state sync timeout
inside: record
outcome: body ending id info job record series state
attempt: clock record
record: body clock id info job leash recurrence series state sync
body: any_job ending id info job leash plan series
ending: info job record state
history: clock id info state
plan: clock error job recurrence retry series timeout
series: clock error job recurrence
info: clock id job state
stats: info lateness state
recurrence: clock error job
retry: chance clock error job
timeout: clock error job
any_job: job
job: clock id later run
later: job
state: clock sync
leash: sync
sync: clock error
clock: error
surroundings:
lateness: histogram
histogram:
line:
error: id
id:
chance:
";

/// The arrows that close a circle, and why they may. Without them there is none.
const CIRCLES: &[(&str, &str)] = &[
    // A job is handed its run, and a run knows how its job is run: one idea in two files.
    ("job", "run"),
    // A job may answer that its run ends later, and what comes then is an answer.
    ("job", "later"),
    // A record holds those who watch it, and who watches is handed the record.
    ("ending", "record"),
    // `Scheduler::builder` makes a builder, and `Builder::build` makes a scheduler.
    ("builder", "scheduler"),
];

/// A file of `src/`: where it is below `src/`, and its code without comments and tests.
struct Source {
    path: PathBuf,
    code: String,
}

impl Source {
    fn is_python(&self) -> bool {
        self.path.starts_with("python")
    }

    /// The module: the file's name, for those right in `src/`.
    fn name(&self) -> &str {
        self.path.file_stem().and_then(|name| name.to_str()).expect("our names are text")
    }

    fn is(&self, name: &str) -> bool {
        self.path == Path::new(name)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                let code = code(&fs::read_to_string(&path).unwrap());
                let path = path.strip_prefix(root().join("src")).unwrap().to_owned();
                sources.push(Source { path, code });
            }
        }
    }
    assert!(sources.len() > 30, "the sources were found");
    sources
}

/// The code of a file: without comments, and without what follows `#[cfg(test)]`, its tests.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    let lines = lines.map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names after each `crate::`, a list in braces included.
fn imports(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(list) => names.extend(list_of(list)),
            None => names.extend([word(after)]),
        }
    }
    names
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first word of each item of a list that ends with its closing brace.
fn list_of(list: &str) -> Vec<String> {
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            _ if depth == 0 => items.last_mut().expect("it has one").push(c),
            _ => {}
        }
    }
    items.iter().map(|item| word(item.trim())).filter(|item| !item.is_empty()).collect()
}

/// The arrows of the core, as they are.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let core = sources().into_iter().filter(|source| !source.is_python() && !source.is("lib.rs"));
    core.map(|source| (source.name().to_owned(), imports(&source.code))).collect()
}

/// The arrows that are meant to be.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let one_a_line = ARROWS.replace("\n    ", " ");
    let rows = one_a_line.lines().filter_map(|line| line.split_once(':'));
    rows.map(|(file, list)| (file.into(), list.split_whitespace().map(Into::into).collect()))
        .collect()
}

#[test]
fn every_arrow_is_one_that_is_meant_to_be() {
    let table = table();
    let found = arrows();
    for (file, imports) in &found {
        let Some(meant) = table.get(file) else { panic!("src/{file}.rs is not in the table") };
        let new: Vec<_> = imports.difference(meant).collect();
        assert!(new.is_empty(), "src/{file}.rs imports {new:?}, which is not in the table");
        let gone: Vec<_> = meant.difference(imports).collect();
        assert!(gone.is_empty(), "src/{file}.rs imports {gone:?} no more: take it off the table");
    }
    assert_eq!(found.len(), table.len(), "the table names a file that is gone");
}

#[test]
fn nobody_reaches_up_by_super() {
    for source in sources().iter().filter(|source| !source.is_python()) {
        assert!(!source.code.contains("super::"), "{:?} says super", source.path);
    }
}

/// The rooms as ARCHITECTURE.md draws them, the top first: lines of names.
fn rooms() -> Vec<BTreeSet<String>> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, picture) = page.split_once("\n lib ").expect("the picture has a line for lib");
    let (picture, _) = picture.split_once("```").expect("the picture ends");
    let known: BTreeSet<String> = table().into_keys().collect();
    let lines = picture.lines().skip(1).map(|line| {
        // Names first; two spaces or more part them from what they are for.
        let names = line.trim().split("   ").next().unwrap_or_default();
        let names: BTreeSet<String> = names.split_whitespace().map(Into::into).collect();
        let unknown: Vec<_> = names.difference(&known).collect();
        assert!(unknown.is_empty(), "ARCHITECTURE.md draws {unknown:?}");
        names
    });
    lines.filter(|names| !names.is_empty()).collect()
}

#[test]
fn every_arrow_points_down_the_picture() {
    let rooms = rooms();
    let line = |file: &str| rooms.iter().position(|room| room.contains(file));
    for (file, imports) in arrows() {
        let own = line(&file).unwrap_or_else(|| panic!("ARCHITECTURE.md does not draw {file}"));
        for import in imports {
            let other = line(&import).unwrap_or_else(|| panic!("{file} imports {import}"));
            let excused = CIRCLES.contains(&(file.as_str(), import.as_str()));
            assert!(own <= other || excused, "the arrow from {file} to {import} points up");
        }
    }
}

#[test]
fn there_are_no_circles_but_the_few_with_a_reason() {
    let mut left = arrows();
    for (from, to) in CIRCLES {
        let there = left.get_mut(*from).is_some_and(|imports| imports.remove(*to));
        assert!(there, "the arrow from {from} to {to} is gone: take it off the list");
    }
    // Take away whoever imports nobody that is left, until nobody is left.
    while !left.is_empty() {
        let bottom: Vec<String> = left
            .iter()
            .filter(|(_, imports)| imports.iter().all(|import| !left.contains_key(import)))
            .map(|(file, _)| file.clone())
            .collect();
        assert!(!bottom.is_empty(), "a circle among {:?}", left.keys());
        left.retain(|file, _| !bottom.contains(file));
    }
}

/// The names that `lib.rs` exports.
fn exports() -> BTreeSet<String> {
    let sources = sources();
    let lib = sources.iter().find(|source| source.is("lib.rs")).expect("it is there");
    let mut names = BTreeSet::new();
    for statement in lib.code.split(';') {
        let statement = statement.trim();
        if let Some((_, module)) = statement.rsplit_once("pub mod ") {
            names.insert(module.into());
        } else if let Some((_, path)) = statement.rsplit_once("pub use ") {
            let items = path.split_once("::").map_or(path, |(_, items)| items);
            let items = items.trim_start_matches('{').trim_end_matches('}').split(',');
            let exported = items.map(|item| item.rsplit_once(" as ").map_or(item, |(_, to)| to));
            names.extend(exported.map(|name| name.trim().to_owned()));
        }
    }
    assert!(
        names.contains("Scheduler") && names.contains("retry") && names.contains("current_run")
    );
    names
}

#[test]
fn the_python_part_uses_only_what_everybody_can() {
    let exports = exports();
    for source in sources().iter().filter(|source| source.is_python()) {
        for name in imports(&source.code) {
            let own = name == "python";
            assert!(own || exports.contains(&name), "{:?} uses crate::{name}", source.path);
        }
    }
}

/// The files whose code says `word`.
fn who_says(word: &str) -> BTreeSet<String> {
    let sources = sources();
    let saying = sources.iter().filter(|source| source.code.contains(word));
    saying.map(|source| source.path.display().to_string()).collect()
}

#[test]
fn only_the_python_part_says_pyo3() {
    let elsewhere = who_says("pyo3").into_iter().filter(|path| !path.starts_with("python"));
    assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0]);
}

/// The fork rule stands or falls with it.
#[test]
fn only_sync_names_parking_lot_and_atomics() {
    assert_eq!(who_says("parking_lot"), BTreeSet::from(["sync.rs".into()]));
    // The Python part may use std's atomics: a flag of its own, beside the core and not in it,
    // needs none of what sync.rs is for, and sync.rs is not for export.
    let atomics = who_says("atomic").into_iter().filter(|path| !path.starts_with("python"));
    assert_eq!(atomics.collect::<Vec<_>>(), ["sync.rs"]);
}

/// What is looked up on demand is what a fork can catch half looked up.
#[test]
fn only_lookup_makes_python_objects_once() {
    for word in ["PyOnceLock", "GILOnceCell", "intern!", "LazyLock"] {
        let saying = who_says(word);
        let elsewhere = saying.iter().filter(|path| *path != "python/lookup.rs");
        assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0], "{word}");
    }
}

#[test]
fn only_clock_asks_what_time_it_is() {
    assert_eq!(who_says("Instant::now"), BTreeSet::from(["clock.rs".into()]));
    // A wall-clock instant is converted once, at the border.
    assert_eq!(who_says("SystemTime::now"), BTreeSet::from(["python/numbers.rs".into()]));
}

#[test]
fn the_reader_of_sources_reads_what_is_there() {
    let text = "use crate::a::{B, C};\n// crate::comment\nlet x = crate::d::e(); use \
                crate::{f, g::{h, i}, J};\n    #[cfg(test)]\nmod tests { use crate::k; }";
    let found = imports(&code(text));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["J", "a", "d", "f", "g"]);
}
