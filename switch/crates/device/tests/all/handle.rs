// SPDX-License-Identifier: Apache-2.0
//! Closures from another thread run on the device's thread; when the device is gone, callers hear it.

use device::{DeviceGone, DeviceHandle, PortConfig};
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
