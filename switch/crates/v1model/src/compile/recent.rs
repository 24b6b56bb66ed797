// SPDX-License-Identifier: Apache-2.0
//! The programs that are in use, and small ones that were lately: networks of many switches, and run after run of an
//! experiment, load the same one again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use serde_json::Value;

use super::code::Program;
use super::layout::Layout;
use super::optimise::optimise;
use super::Written;
use crate::error::{contained, LoadError};
use crate::json::{Budget, Json};
use crate::native;
use crate::pipeline::{Engine, ENGINE_VARIABLE};
use crate::schema::Schema;

/// Tells compiled programs apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProgramId(u64);

impl ProgramId {
    fn next() -> ProgramId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ProgramId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// What becomes of a JSON; immutable.
pub(crate) struct Compiled {
    pub id: ProgramId,
    /// As it is written.
    pub program: Program,
    pub schema: Schema,
    pub layout: Layout,
    /// Its machine code, or why there is none; None where the interpreter was chosen.
    pub native: Option<Result<native::Compiled, String>>,
    /// Memory that it takes with its state, at most.
    pub bytes: u64,
}

/// So many small programs are kept that nobody uses.
const MOST: usize = 4;
/// Bytes of the JSON of a small program.
const SMALL: usize = 2 << 20;

/// Length and hash of a JSON, by a key that nobody outside of this process knows: nobody can write two of the same.
type Name = (usize, u64);

struct Known {
    name: Name,
    program: Weak<Compiled>,
    /// Of the last small ones.
    kept: Option<Arc<Compiled>>,
}

/// The last used last.
struct Recent {
    hasher: RandomState,
    known: Mutex<Vec<Known>>,
}

static RECENT: LazyLock<Recent> = LazyLock::new(Recent::new);

/// The program of a JSON, which may take `budget_bytes`: compiled now, or taken from those that were.
///
/// # Errors
/// Anything unsupported, with its JSON path.
pub(crate) fn compiled(json: &[u8], budget_bytes: u64) -> Result<Arc<Compiled>, LoadError> {
    RECENT.get(json, budget_bytes)
}

fn compile(json: &[u8], budget_bytes: u64) -> Result<Compiled, LoadError> {
    let value: Value =
        serde_json::from_slice(json).map_err(|e| LoadError::new("/", format!("not JSON: {e}")))?;
    let budget = Budget::new(budget_bytes);
    let written = super::program(&Json::root(&value, &budget))?;
    let engine = Engine::chosen().map_err(|error| LoadError::new(ENGINE_VARIABLE, error))?;
    let mut native = (engine == Engine::Native).then(|| {
        // A fault of ours in it is none of the program's.
        let compiled = contained(|| native::compile(optimise(&written)?, &written.schema));
        compiled
            .map_err(|fault| fault.to_string())?
            .map_err(|error| error.to_string())
    });
    let Written {
        mut program,
        schema,
        layout,
        ..
    } = written;
    if let Some(Ok(code)) = &mut native {
        program.fallback = std::mem::take(&mut code.fallback);
    }
    Ok(Compiled {
        id: ProgramId::next(),
        program,
        schema,
        layout,
        native,
        bytes: budget.taken(),
    })
}

impl Recent {
    fn new() -> Recent {
        Recent {
            hasher: RandomState::new(),
            known: Mutex::new(Vec::new()),
        }
    }

    fn get(&self, json: &[u8], budget_bytes: u64) -> Result<Arc<Compiled>, LoadError> {
        let name = (json.len(), self.hasher.hash_one(json));
        let known = self.take(name).filter(|known| known.bytes <= budget_bytes);
        let program = match known {
            Some(program) => program,
            // Without the lock: others need not wait.
            None => Arc::new(compile(json, budget_bytes)?),
        };
        self.put(name, &program);
        Ok(program)
    }

    fn take(&self, name: Name) -> Option<Arc<Compiled>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|k| k.name == name)?.program.upgrade()
    }

    fn put(&self, name: Name, program: &Arc<Compiled>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled the same meanwhile.
        known.retain(|k| k.name != name && k.program.strong_count() > 0);
        known.push(Known {
            name,
            program: Arc::downgrade(program),
            kept: (name.0 <= SMALL).then(|| program.clone()),
        });
        let kept = known.iter_mut().rev().filter(|k| k.kept.is_some());
        kept.skip(MOST).for_each(|k| k.kept = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: u64 = 1 << 30;

    fn json(n: usize) -> Vec<u8> {
        let text = include_str!("../../tests/p4/compiled/headers.json");
        assert!(text.contains("\"program\" : "));
        text.replacen(
            "\"program\" : ",
            &format!("\"recent\": {n}, \"program\" : "),
            1,
        )
        .into_bytes()
    }

    #[test]
    fn the_same_json_is_compiled_once() {
        let recent = Recent::new();
        let get = |n| recent.get(&json(n), BUDGET).unwrap();
        let first = get(0);
        assert!(Arc::ptr_eq(&first, &get(0)));
        for n in 1..MOST {
            assert!(!Arc::ptr_eq(&first, &get(n)));
        }
        assert!(Arc::ptr_eq(&first, &get(0)));
        for n in 1..=MOST {
            get(n);
        }
        assert!(Arc::ptr_eq(&first, &get(0)), "it is in use");
    }

    /// Programs that are alive.
    fn alive(recent: &Recent) -> usize {
        let known = recent.known.lock().unwrap();
        known
            .iter()
            .filter(|k| k.program.strong_count() > 0)
            .count()
    }

    #[test]
    fn only_a_few_small_programs_stay_when_nobody_uses_them() {
        let recent = Recent::new();
        for n in 0..2 * MOST {
            recent.get(&json(n), BUDGET).unwrap();
        }
        assert_eq!(alive(&recent), MOST);
        let large = |n: usize| [json(n), vec![b' '; SMALL]].concat();
        let used: Vec<_> = (0..MOST + 1)
            .map(|n| recent.get(&large(n), BUDGET).unwrap())
            .collect();
        for (n, program) in used.iter().enumerate() {
            assert!(Arc::ptr_eq(
                program,
                &recent.get(&large(n), BUDGET).unwrap()
            ));
        }
        assert_eq!(alive(&recent), MOST + used.len());
        drop(used);
        assert_eq!(alive(&recent), MOST);
        recent.get(&json(0), BUDGET).unwrap();
        assert_eq!(recent.known.lock().unwrap().len(), MOST + 1);
    }

    #[test]
    fn a_known_program_must_fit_in_the_budget_too() {
        let recent = Recent::new();
        let bytes = recent.get(&json(0), BUDGET).unwrap().bytes;
        assert!(recent.get(&json(0), bytes).is_ok());
        assert!(recent.get(&json(0), bytes - 1).is_err());
    }

    #[test]
    fn an_error_is_an_error_again() {
        let recent = Recent::new();
        for _ in 0..2 {
            let error = recent.get(b"{\"header_types\": 1}", BUDGET).map(|_| ());
            assert_eq!(error.unwrap_err().path, "/");
        }
        assert!(recent.get(b"{", BUDGET).is_err());
    }
}
