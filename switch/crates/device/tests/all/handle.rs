// SPDX-License-Identifier: Apache-2.0
//! Closures from another thread run on the device's thread; when the device is gone, callers hear it.

use device::{DeviceGone, DeviceHandle, PortConfig};
use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_call_runs_on_the_devices_thread_and_answers() {
    let (wake, woken) = mpsc::channel();
    let (handle, mut calls) = DeviceHandle::new(move || {
        let _ = wake.send(());
    });
    let caller = std::thread::spawn(move || {
        let first = handle.call_blocking(|device, now| (device.ports().count(), now));
        (first, handle)
    });
    woken.recv_timeout(Duration::from_secs(10)).unwrap();
    let mut device = crate::common::device(PortConfig::default());
    assert!(calls.run_one(&mut device, |_| 42));
    assert!(!calls.run_one(&mut device, |_| 43));
    let (answer, handle) = caller.join().unwrap();
    assert_eq!(answer, Ok((6, 42)));
    drop(calls);
    assert_eq!(handle.call_blocking(|_, _| ()), Err(DeviceGone));
}

#[test]
fn a_call_in_pieces_lets_others_between_them() {
    let (handle, mut calls) = DeviceHandle::new(|| ());
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (long, short, mut left) = (order.clone(), order.clone(), 3);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let in_pieces = handle.call_in_pieces(move |_, now| {
            long.lock().unwrap().push(("long", now));
            left -= 1;
            (left == 0).then_some(now)
        });
        let whole = handle.call(move |_, now| short.lock().unwrap().push(("short", now)));
        let (mut in_pieces, mut whole) = (std::pin::pin!(in_pieces), std::pin::pin!(whole));
        let mut waits = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(in_pieces.as_mut().poll(&mut waits).is_pending());
        assert!(whole.as_mut().poll(&mut waits).is_pending());
        let mut device = crate::common::device(PortConfig::default());
        let mut now = 0;
        while calls.run_one(&mut device, |_| now) {
            now += 1;
        }
        assert_eq!(in_pieces.await, Ok(3));
        assert_eq!(whole.await, Ok(()));
    });
    let expected = [("long", 0), ("short", 1), ("long", 2), ("long", 3)];
    assert_eq!(*order.lock().unwrap(), expected);
}

#[test]
fn an_async_call_hears_that_the_device_is_gone() {
    let (handle, calls) = DeviceHandle::new(|| ());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let answer = runtime.block_on(async {
        let call = handle.call(|_, _| ());
        drop(calls);
        tokio::time::timeout(Duration::from_secs(10), call)
            .await
            .unwrap()
    });
    assert_eq!(answer, Err(DeviceGone));
    assert_eq!(DeviceGone.to_string(), "the switch has stopped");
}
