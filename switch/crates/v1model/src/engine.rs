// SPDX-License-Identifier: Apache-2.0
//! What runs a program: machine code or the interpreter. Both do the same.

use std::sync::atomic::{AtomicU8, Ordering};

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Machine code, made when the program is loaded.
    Native,
    /// The interpreter.
    Interpreter,
}

/// Names the engine of pipelines for which nothing else is chosen, for tests: `native` or `interpreter`.
pub const ENGINE_VARIABLE: &str = "FAIRLANE_ENGINE";

/// 0: not chosen yet.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Engine {
    /// The engine of this name.
    pub fn from_name(name: &str) -> Option<Engine> {
        match name {
            "native" => Some(Engine::Native),
            "interpreter" => Some(Engine::Interpreter),
            _ => None,
        }
    }

    /// Makes this the engine of programs that are loaded from now on, in the whole process.
    pub fn choose(self) {
        CHOSEN.store(self as u8 + 1, Ordering::Relaxed);
    }

    /// The engine of programs that are loaded now: the one chosen, else that of `ENGINE_VARIABLE`, else `Native`.
    pub fn chosen() -> Engine {
        match CHOSEN.load(Ordering::Relaxed) {
            0 => {
                let name = std::env::var(ENGINE_VARIABLE).unwrap_or_default();
                let engine = Engine::from_name(&name).unwrap_or(Engine::Native);
                engine.choose();
                engine
            }
            1 => Engine::Native,
            _ => Engine::Interpreter,
        }
    }
}
