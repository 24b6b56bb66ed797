// SPDX-License-Identifier: Apache-2.0
//! What runs a program: machine code or the interpreter. Both do the same.

use std::str::FromStr;
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

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Engine, String> {
        match name {
            "native" => Ok(Engine::Native),
            "interpreter" => Ok(Engine::Interpreter),
            _ => Err(format!(
                "\"{name}\" is no engine; allowed: native, interpreter"
            )),
        }
    }
}

impl Engine {
    /// Makes this the engine of programs that are loaded from now on, in the whole process.
    pub fn choose(self) {
        CHOSEN.store(self as u8 + 1, Ordering::Relaxed);
    }

    /// The engine of programs that are loaded now: the one chosen, else that of `ENGINE_VARIABLE`, else `Native`.
    ///
    /// # Errors
    /// What is wrong with the variable's value.
    pub fn chosen() -> Result<Engine, String> {
        match CHOSEN.load(Ordering::Relaxed) {
            0 => {
                let engine = match std::env::var_os(ENGINE_VARIABLE) {
                    Some(name) => name.to_string_lossy().parse()?,
                    None => Engine::Native,
                };
                engine.choose();
                Ok(engine)
            }
            1 => Ok(Engine::Native),
            _ => Ok(Engine::Interpreter),
        }
    }
}
