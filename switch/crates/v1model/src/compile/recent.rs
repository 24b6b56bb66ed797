// SPDX-License-Identifier: Apache-2.0
//! The programs compiled last: networks of many switches, and run after run of an experiment, load the same one again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::code::Program;
use super::layout::Layout;
use crate::engine::{Engine, ENGINE_VARIABLE};
use crate::error::LoadError;
use crate::fault::contained;
use crate::json::{Budget, Json};
use crate::native;
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
    pub program: Program,
    pub schema: Schema,
    pub layout: Layout,
    /// Its machine code, or why there is none; None where the interpreter was chosen.
    pub native: Option<Result<native::Compiled, String>>,
    /// Memory that it takes with its state, at most.
    pub bytes: u64,
}

/// So many programs are kept.
const MOST: usize = 4;

struct Kept {
    json: Box<[u8]>,
    program: Arc<Compiled>,
}

/// The last used last.
struct Recent(Mutex<Vec<Kept>>);

static RECENT: Recent = Recent::new();

/// The program of a JSON, which may take `budget_bytes`: compiled now, or taken from those that were.
///
/// # Errors
/// Anything unsupported, with its JSON path.
pub(crate) fn compiled(json: &[u8], budget_bytes: u64) -> Result<Arc<Compiled>, LoadError> {
    RECENT.get(json, budget_bytes)
}

/// Compiles a JSON by `program`.
pub(crate) fn compile(
    json: &[u8],
    budget_bytes: u64,
    program: impl Fn(&Json) -> Result<(Program, Schema, Layout), LoadError>,
) -> Result<Compiled, LoadError> {
    let value: Value =
        serde_json::from_slice(json).map_err(|e| LoadError::new("/", format!("not JSON: {e}")))?;
    let budget = Budget::new(budget_bytes);
    let (mut program, schema, layout) = program(&Json::root(&value, &budget))?;
    let engine = Engine::chosen().map_err(|error| LoadError::new(ENGINE_VARIABLE, error))?;
    let native = (engine == Engine::Native).then(|| {
        // A fault of ours in it is none of the program's.
        let compiled = contained(|| native::compile(&mut program, &schema));
        compiled
            .map_err(|fault| fault.to_string())?
            .map_err(|error| error.to_string())
    });
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
    const fn new() -> Recent {
        Recent(Mutex::new(Vec::new()))
    }

    fn get(&self, json: &[u8], budget_bytes: u64) -> Result<Arc<Compiled>, LoadError> {
        let known = self.take(json).filter(|known| known.bytes <= budget_bytes);
        let program = match known {
            Some(program) => program,
            // Without the lock: others need not wait.
            None => Arc::new(compile(json, budget_bytes, super::program)?),
        };
        self.put(json, &program);
        Ok(program)
    }

    fn take(&self, json: &[u8]) -> Option<Arc<Compiled>> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.iter().position(|kept| *kept.json == *json)?;
        Some(recent.remove(at).program)
    }

    fn put(&self, json: &[u8], program: &Arc<Compiled>) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled the same meanwhile.
        recent.retain(|kept| *kept.json != *json);
        if recent.len() == MOST {
            recent.remove(0);
        }
        recent.push(Kept {
            json: json.into(),
            program: program.clone(),
        });
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
    fn the_same_json_is_compiled_once_and_old_ones_go() {
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
        assert_eq!(recent.0.lock().unwrap().len(), MOST);
        assert!(!Arc::ptr_eq(&first, &get(0)));
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
