// SPDX-License-Identifier: Apache-2.0
//! Captures while frames come.

mod reading;

use capture::{Interface, Limits, Live, Progress, Recorder};
use reading::{read, temporary};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

fn start(path: &Path, limits: Limits) -> (Live, Recorder) {
    let interfaces = ["up", "down"].map(|name| Interface {
        name: name.to_owned(),
        description: String::new(),
    });
    Live::start(path.to_owned(), interfaces.to_vec(), 20, limits).unwrap()
}

fn done(live: &Live) -> Progress {
    for _ in 0..2_000 {
        let progress = live.progress();
        if progress.is_done {
            return progress;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("not done: {:?}", live.progress());
}

#[test]
fn it_has_so_many_packets_cut_at_the_snap_length() {
    let path = temporary("packets");
    let limits = Limits {
        packets: Some(3),
        ..Limits::default()
    };
    let (live, mut recorder) = start(&path, limits);
    for at in 1..=5 {
        recorder.record(
            at % 2,
            u64::from(at) << 40,
            &[at as u8; 40][..10 + 5 * at as usize],
        );
    }
    let progress = done(&live);
    assert_eq!(
        (progress.packets, progress.lost, progress.error),
        (3, 0, None)
    );
    let seen = read(&path);
    std::fs::remove_file(&path).unwrap();
    let found = seen
        .iter()
        .map(|one| (&*one.interface, one.at_ns, one.len_bytes, &one.bytes[..]));
    let expected: [(&str, u64, u32, &[u8]); 3] = [
        ("down", 1 << 40, 15, &[1; 15]),
        ("up", 2 << 40, 20, &[2; 20]),
        ("down", 3 << 40, 25, &[3; 20]),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn it_ends_after_its_time_without_a_frame() {
    let path = temporary("time");
    let limits = Limits {
        duration: Some(Duration::from_millis(20)),
        ..Limits::default()
    };
    let (live, _recorder) = start(&path, limits);
    assert_eq!(done(&live).packets, 0);
    assert!(read(&path).is_empty());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_file_that_cannot_be_had_is_told() {
    let (live, mut recorder) = start(Path::new("/nowhere/x.pcapng"), Limits::default());
    let told = done(&live).error.unwrap();
    assert_eq!(
        told,
        "/nowhere/x.pcapng: No such file or directory (os error 2)"
    );
    recorder.record(0, 0, &[0; 60]);
    assert_eq!(live.progress().packets, 0);
}

#[test]
fn a_full_disk_ends_it_with_the_systems_word() {
    let (live, mut recorder) = start(Path::new("/dev/full"), Limits::default());
    (0..1_000).for_each(|at| recorder.record(0, at, &[0; 60]));
    let told = done(&live).error.unwrap();
    assert!(
        told.starts_with("/dev/full: No space left on device"),
        "{told}"
    );
}

/// More frames than the ring holds, at once: those that found no room are counted, and the file has all others in order.
#[test]
fn what_finds_the_ring_full_is_counted() {
    let path = temporary("full");
    let (live, mut recorder) = start(&path, Limits::default());
    const OFFERED: u64 = 400_000;
    (0..OFFERED).for_each(|at| recorder.record(0, at, &[0; 60]));
    live.stop();
    let progress = done(&live);
    let seen = read(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(progress.packets + progress.lost, OFFERED);
    assert_eq!(seen.len() as u64, progress.packets);
    assert!(seen.is_sorted_by_key(|one| one.at_ns));
    assert!(progress.lost > 0);
}

fn pipe(name: &str) -> PathBuf {
    let path = temporary(name);
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error() {
    let path = pipe("nobody");
    let (live, _recorder) = start(&path, Limits::default());
    let error = done(&live).error.unwrap();
    assert!(error.contains("No such device or address"), "{error}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_pipe_that_is_read_no_more_keeps_nobody_waiting() {
    let path = pipe("stuck");
    let _reader = File::options().read(true).write(true).open(&path).unwrap();
    let (live, mut recorder) = start(&path, Limits::default());
    // More than a pipe takes.
    for at in 0..10_000 {
        recorder.record(0, at, &[0; 20]);
    }
    let (ended, end) = channel();
    std::thread::spawn(move || {
        drop(live);
        ended.send(())
    });
    end.recv_timeout(Duration::from_secs(60)).unwrap();
    std::fs::remove_file(&path).unwrap();
}
