// SPDX-License-Identifier: Apache-2.0
//! Inputs that once were findings are none any more; and each target takes its documents as they are.

use std::sync::mpsc;
use std::time::Duration;

use fuzz::campaign::{corpus, inputs};
use fuzz::guard::Counting;
use fuzz::input::Input;
use fuzz::targets;

/// The target `wire` measures with it.
#[global_allocator]
static MEMORY: Counting = Counting;

/// No input takes nearly so long.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn documents_and_old_findings_are_taken() {
    for name in targets::names() {
        let (tell, told) = mpsc::channel();
        let work = std::thread::spawn(move || {
            let mut target = targets::make(name);
            let plain = target.bases.iter();
            let plain = plain.map(|(base, _)| (base.into(), Input::of(base)));
            let all: Vec<_> = plain.chain(inputs(&corpus(name))).collect();
            for (path, input) in all {
                let result = (target.run)(input.document(&target.bases));
                tell.send((path, result)).expect("the test waits");
            }
        });
        loop {
            match told.recv_timeout(LIMIT) {
                Ok((path, result)) => assert_eq!(result, Ok(()), "{name}: {}", path.display()),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    panic!("{name}: an input takes more than {LIMIT:?}")
                }
            }
        }
        assert!(work.join().is_ok(), "{name}: an input ended in a panic");
    }
}
